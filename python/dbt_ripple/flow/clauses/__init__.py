"""The clauses of a query, one module each: what its rows and columns are after it.

They are functions of the linker (`flow.link`) and of what the clauses before it left.
"""
