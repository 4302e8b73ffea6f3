"""What stands in a CTE that nothing refers to, taken out of a parse tree before it is lowered.

Only of a query that cannot be followed as it stands. It is apart from `flow.unused_ctes` because
that needs no parser.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.engine_checks import UNUSED_CTES, UNUSED_RECURSIVE_CTES
from dbt_ripple.flow.ir import EPHEMERAL_PREFIX

_RUN_ANYWAY: Final = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Command, exp.Pivot)
"""Statements in a CTE that are run though nothing reads it; DuckDB asks for the values of a PIVOT."""

_READ_BY_TEXT: Final = ("query", "query_table")
"""Functions that read what a text names, which may be put together."""


def empty_unused_ctes(tree: Any, dialect: str) -> bool:
    """Leave of the CTEs that nothing refers to only which relations they name.

    That is done where the engine does not look into them: what stands in there changes nothing,
    whether it can be followed or not. A name that occurs anywhere else, as whatever it may be,
    counts as a reference.

    Returns:
        Whether there is such a CTE.
    """
    if reads_by_text(tree):
        return False
    names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    emptied: set[int] = set()
    another_round = True
    while another_round:
        another_round = False
        for cte in list(tree.find_all(exp.CTE)):
            recursive = bool(cte.parent.args.get("recursive"))
            checks_by_dialect = UNUSED_RECURSIVE_CTES if recursive else UNUSED_CTES
            name = cte.alias.lower()
            if (
                checks_by_dialect.get(dialect) is not False
                or id(cte) in emptied
                or not name
                or name.startswith(EPHEMERAL_PREFIX)
                or not isinstance(cte.this, exp.Query)
                or cte.find(*_RUN_ANYWAY) is not None
                or _is_said(name, tree, cte)
            ):
                continue
            relations = {
                table.sql(): exp.Table(this=this.copy(), **_names_before(table))
                for table in cte.this.find_all(exp.Table)
                if isinstance(this := table.this, exp.Identifier)
                and (table.args.get("db") or this.name.lower() not in names)
            }
            cte.set("this", exp.Select(expressions=[exp.Literal.number(1)]))
            for i, relation in enumerate(relations.values()):
                if i:
                    cte.this.append("joins", exp.Join(this=relation, kind="CROSS"))
                else:
                    cte.this.set("from_", exp.From(this=relation))
            cte.set("alias", exp.TableAlias(this=cte.args["alias"].this))
            for arg in cte.args.keys() - {"this", "alias"}:
                cte.set(arg, None)
            emptied.add(id(cte))
            another_round = True
    return bool(emptied)


def reads_by_text(tree: Any) -> bool:
    """Whether a query may read what a text in it names: a CTE, too, to which nothing else refers."""
    return any(_is_said(name, tree) for name in _READ_BY_TEXT)


def _names_before(table: Any) -> dict[str, Any]:
    return {part: table.args[part].copy() for part in ("db", "catalog") if table.args.get(part)}


def _is_said(name: str, tree: Any, cte: Any = None) -> bool:
    """Whether a word occurs in a parse tree outside of a CTE, as a name or in any text."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    return any(
        isinstance(text, str) and word.search(text)
        for node in tree.walk(prune=lambda node: node is cte)
        if node is not cte
        for text in node.args.values()
    )
