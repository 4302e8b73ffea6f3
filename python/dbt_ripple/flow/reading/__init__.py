"""SQL as text: its tokens, its statements, its parse trees. Everything else in the package asks `reading.reader`.

sqlglot misreads some of what engines read. What is known of that is in this room: what is made of a text
and of its trees (`text_repairs`) and of its tokens (`token_repairs`), what is refused
(`refusals`), what a tree does not hold (`dropped_tokens`), and what older versions of sqlglot do otherwise
(`sqlglot_versions`). What dialects have in common is in `dialects`.
"""
