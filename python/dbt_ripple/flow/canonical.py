"""A query in one of the many forms that mean the same: the second, stronger comparison.

Two queries whose fingerprints differ may still mean the same. Here a query is brought into a
canonical form by rules that each hold by themselves (`flow.rewrites`), and linked so that the order
of joins and branches says nothing (`flow.any_order`). Equal fingerprints of two canonical forms
prove two queries equal, as they do of two plain ones; different ones prove nothing.

A rule may ask which source a column is of. Whatever names sqlglot has resolved for that is believed
only where the query has the same plain fingerprints with these names as without them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from dbt_ripple.flow.ir import Lowered
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower_tree, parse
from dbt_ripple.flow.names import fold
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.rewrites import Rewriting, rewrite

logging.getLogger("sqlglot").addFilter(lambda record: "optimizer" not in record.pathname)

MAX_LENGTH: Final = 100_000
"""Characters of a query above which its canonical form is not looked for."""

FindTable = Callable[[str, str], Relation]


class Canonical(NamedTuple):
    """A query's canonical form, linked; and the names of the rules that made it."""

    linked: Linked
    rules: list[str]


def canonical(
    sql: str,
    dialect: str,
    plain: Linked,
    table: FindTable,
    masking: Collection[str] = (),
) -> Canonical | None:
    """The canonical form of a query.

    Args:
        sql: the query.
        dialect: it is written in.
        plain: the query as it stands, linked to the same relations.
        table: the relation behind a name, as for `link`.
        masking: functions that mask their arguments, besides those known to.

    Returns:
        None where there is none: its columns are not all known, or it cannot be read for sure. It
        has the columns of `plain`, by the same names.
    """
    relation = plain.relation
    if len(sql) > MAX_LENGTH or plain.missing or plain.unknown or relation.rest:
        return None
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(max(limit, 20_000))
        return _canonical(sql, dialect, plain, table, masking)
    except (SqlglotError, RecursionError):
        return None
    finally:
        sys.setrecursionlimit(limit)


def _canonical(
    sql: str, dialect: str, plain: Linked, table: FindTable, masking: Collection[str]
) -> Canonical | None:
    tree = parse(sql, dialect)
    if tree is None or not _is_same(tree, dialect, plain, table, masking):
        return None
    tree = _query_of(tree)
    if tree is None:
        return None
    _name_outputs(tree, plain.relation.names)
    rewriting = Rewriting(dialect)
    named = _qualified(tree, dialect, table)
    if named is not None and _is_same(named, dialect, plain, table, masking):
        tree, rewriting.qualified = named, True
    elif not _is_same(tree, dialect, plain, table, masking):
        return None
    tree = rewrite(tree, rewriting)
    linked = _linked(lower_tree(tree, dialect, masking), dialect, table, in_any_order=True)
    if linked is None or linked.relation.keys != plain.relation.keys:
        return None
    return Canonical(linked, list(rewriting.used))


def _query_of(tree: Any) -> Any:
    """The query of a statement; None where it is no query alone."""
    return tree if isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery)) else None


def _linked(
    lowered: Lowered, dialect: str, table: FindTable, *, in_any_order: bool = False
) -> Linked | None:
    if lowered.rel is None:
        return None
    linked = link(lowered, table, dialect, in_any_order=in_any_order)
    return None if linked.missing or linked.unknown or linked.relation.rest else linked


def _is_same(
    tree: Any, dialect: str, plain: Linked, table: FindTable, masking: Collection[str]
) -> bool:
    """Whether a tree has the fingerprints of the query as it stands."""
    linked = _linked(lower_tree(tree, dialect, masking), dialect, table)
    if linked is None:
        return False
    one, other = linked.relation, plain.relation
    return (one.keys, one.fps, one.rows_fp, one.order, one.incidental) == (
        other.keys,
        other.fps,
        other.rows_fp,
        other.order,
        other.incidental,
    )


def _name_outputs(tree: Any, names: list[str]) -> None:
    """Give the outputs of a query the names that they have."""
    while isinstance(tree, (exp.SetOperation, exp.Subquery)):
        tree = tree.this
    if not isinstance(tree, exp.Select) or tree.is_star or len(tree.expressions) != len(names):
        return
    items = []
    for item, name in zip(tree.expressions, names, strict=True):
        plain = isinstance(item, (exp.Alias, exp.Column, exp.Aliases))
        items.append(item if plain else exp.alias_(item, exp.to_identifier(name, quoted=True)))
    tree.set("expressions", items)


def _qualified(tree: Any, dialect: str, table: FindTable) -> Any:
    """A copy in which each column says which source it is of; None where that is not known."""
    copy = tree.copy()
    ctes = {fold(c.alias, False, dialect) for c in copy.find_all(exp.CTE)}
    schema: dict[str, object] = {}
    real: dict[str, tuple[Any, Any, Any]] = {}
    for node in list(copy.find_all(exp.Table)):
        if not isinstance(node.this, exp.Identifier):
            return None
        parts = [fold(p.name, bool(p.args.get("quoted")), dialect) for p in node.parts]
        if len(parts) == 1 and parts[0] in ctes:
            continue
        relation = table(".".join(parts), ".".join(p.name for p in node.parts))
        if relation.rest or relation.ghost is None:
            return None
        if not node.alias:
            node.set("alias", exp.TableAlias(this=node.this.copy()))
        stand_in = f"t{len(real)}__"
        real[stand_in] = node.this, node.args.get("db"), node.args.get("catalog")
        node.set("this", exp.to_identifier(stand_in))
        node.set("db", None)
        node.set("catalog", None)
        schema[stand_in] = dict.fromkeys(relation.names, "unknown")
    if not schema:
        return None
    try:
        copy = qualify(
            copy,
            schema=schema,
            dialect=dialect,
            validate_qualify_columns=False,
            quote_identifiers=False,
            identify=False,
        )
    except Exception:  # of a query that sqlglot's optimizer does not expect
        return None
    for node in copy.find_all(exp.Table):
        found = real.get(node.name)
        if found is not None:
            for name, value in zip(("this", "db", "catalog"), found, strict=True):
                node.set(name, value.copy() if value is not None else None)
    return copy
