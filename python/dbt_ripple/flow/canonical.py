"""A query in one of the many forms that mean the same: the second, stronger comparison.

Two queries whose fingerprints differ may still mean the same. Here a query is brought into a
canonical form by rules that each hold by themselves (`flow.rewrites`), and linked so that the order
of joins and branches says nothing (`flow.canonical_order`). Equal fingerprints of two canonical forms
prove two queries equal, as they do of two plain ones; different ones prove nothing.

A rule may ask which source a column is of. Whatever names sqlglot has resolved for that is believed
only where the query has the same plain fingerprints with these names as without them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import Lowered
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower_tree
from dbt_ripple.flow.lowering.operators import unbracketed
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import data_type, parse_followed
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.rewrites import RULES, Rewriting, rewrite, settle
from dbt_ripple.flow.rewrites.queries import sees_order
from dbt_ripple.flow.unused_cte_bodies import empty_unused_ctes
from dbt_ripple.tuning import for_deep_queries


def _is_no_news(record: logging.LogRecord) -> bool:
    """Whether sqlglot's optimizer only says what it does not follow: then nothing is rewritten.

    Its extension has no path of its own, so the message decides, too.
    """
    return "optimizer" in record.pathname or str(record.msg).startswith("Cannot traverse scope")


logging.getLogger("sqlglot").addFilter(lambda record: not _is_no_news(record))

MAX_LENGTH: Final = 100_000
"""Characters of a query above which its canonical form is not looked for."""

FindTable = Callable[[str, str], Relation]
FindTypes = Callable[[str], Mapping[str, str]]


class Canonical(NamedTuple):
    """A query's canonical form, linked; and the names of the rules that made it."""

    linked: Linked
    rules: list[str]


@for_deep_queries
def canonical(
    sql: str,
    dialect: str,
    plain: Linked,
    table: FindTable,
    masking: Collection[str] = (),
    types: FindTypes | None = None,
    *,
    is_built: bool = True,
) -> Canonical | None:
    """The canonical form of a query.

    Args:
        sql: the query.
        dialect: it is written in.
        plain: the query as it stands, linked to the same relations.
        table: the relation behind a name, as for `link`.
        masking: functions that mask their arguments, besides those known to.
        types: the types of a relation's columns by name, as far as they are known, given its key.
        is_built: whether a build evaluates the query. Where it does not, as of a view, nobody would see
            that an expression fails which is now evaluated: no rule applies that may bring that about.

    Returns:
        None where there is none: its columns are not all known, or it cannot be read for sure. It
        has the columns of `plain`, by the same names.
    """
    relation = plain.relation
    if len(sql) > MAX_LENGTH or plain.missing or plain.unknown or relation.unlisted:
        return None
    try:
        return _canonical(sql, dialect, plain, table, masking, types, is_built)
    except (SqlglotError, RecursionError):
        return None


def _canonical(
    sql: str,
    dialect: str,
    plain: Linked,
    table: FindTable,
    masking: Collection[str],
    types: FindTypes | None,
    is_built: bool,
) -> Canonical | None:
    prepared = _prepared(sql, dialect, plain, table, masking, types)
    if prepared is None:
        return None
    tree, tokens, rewriting = prepared
    rewriting.evaluated_alike = not is_built
    tree = settle(rewrite(tree, rewriting), rewriting)
    lowered = lower_tree(tree, tokens, dialect, masking)
    linked = _linked(lowered, dialect, table, in_any_order=True)
    if linked is None or linked.relation.keys != plain.relation.keys:
        return None
    if rewriting.reordered or any(RULES[name].reorders for name in rewriting.used):
        relation, before = linked.relation, plain.relation
        rows = before.rows
        fingerprints = (rows.fp, rows.order, rows.incidental, *before.fps)
        incidental = digest(b"rewritten", relation.rows.incidental, *fingerprints)
        relation.rows = msgspec.structs.replace(relation.rows, incidental=incidental)
    return Canonical(linked, list(rewriting.used))


def in_other_words(
    sql: str, dialect: str, plain: Linked, table: FindTable, types: FindTypes | None = None
) -> tuple[str, str] | None:
    """A query as sqlglot writes it, and in canonical form as far as that can be written.

    For tests, which execute both; None where the query has no canonical form or it is its own.
    """
    if plain.missing or plain.unknown or plain.relation.unlisted:
        return None
    try:
        return _in_other_words(sql, dialect, plain, table, types)
    except SqlglotError:  # of what a rule wrote and reads again: there is no canonical form then
        return None


def _in_other_words(
    sql: str, dialect: str, plain: Linked, table: FindTable, types: FindTypes | None
) -> tuple[str, str] | None:
    prepared = _prepared(sql, dialect, plain, table, (), types)
    if prepared is None:
        return None
    tree, tokens, rewriting = prepared
    before = written(tree, dialect)
    tree = rewrite(tree, rewriting)
    linked = _linked(lower_tree(tree, tokens, dialect), dialect, table)
    if linked is None or linked.relation.keys != plain.relation.keys:
        return None  # as in `_canonical`: a name that the engine makes up has changed
    around = (exp.Connector, exp.Predicate, exp.Not, exp.Binary, exp.Neg)
    for node in list(tree.find_all(exp.Connector, exp.Predicate, exp.Not, exp.Binary)):
        plainly = isinstance(node, (exp.Dot, exp.PropertyEQ, exp.SubqueryPredicate))
        if isinstance(node.parent, around) and not plainly and type(node.parent) is not exp.Escape:
            paren = exp.Paren()
            node.replace(paren)
            paren.set("this", node)
    return (before, written(tree, dialect)) if rewriting.used else None


def _prepared(
    sql: str,
    dialect: str,
    plain: Linked,
    table: FindTable,
    masking: Collection[str],
    types: FindTypes | None,
) -> tuple[Any, Sequence[Any], Rewriting] | None:
    """The parse tree of a query, its names resolved where they are believed, and what is known."""
    parsed = parse_followed(sql, dialect)
    if parsed is None:
        return None
    tree, tokens = _query_of(parsed[0]), parsed[1]

    def is_same(tree: Any) -> bool:
        """Whether a tree has the fingerprints of the query as it stands."""
        lowered = lower_tree(tree, tokens, dialect, masking)
        return _is_same(_linked(lowered, dialect, table), plain)

    if tree is None:
        return None
    # As `lower` does it: what cannot be followed may stand in a CTE that nothing refers to.
    if not is_same(tree) and not (empty_unused_ctes(tree, dialect) and is_same(tree)):
        return None
    if any(isinstance(node, _UNMOVED) or unbracketed(node) for node in tree.walk()):
        return None  # the rules take the tree to say what binds to what
    _name_outputs(tree, plain.relation.names)
    rewriting = Rewriting(dialect)
    named = _qualified(tree, dialect, table)
    if named is not None and is_same(named):
        tree, rewriting.qualified = named, True
    elif not is_same(tree):
        return None
    rewriting.apart = rewriting.qualified and _are_apart(tree)
    if types is not None and rewriting.apart:
        rewriting.types = _types(tree, dialect, types)
    rewriting.order_matters = sees_order(tree, dialect)
    return tree, tokens, rewriting


_UNMOVED: Final = (exp.Parameter, exp.PositionalColumn, exp.TableSample)
"""What a rule would change by moving columns or conditions: ``#2`` and ``$2`` count the columns of FROM, and a
sample is taken behind ON and before WHERE."""


def _types(tree: Any, dialect: str, types: FindTypes) -> dict[str, dict[str, str]]:
    """The types of the columns of each source that is a relation, by its alias."""
    by_alias: dict[str, dict[str, str]] = {}
    for node in tree.find_all(exp.Table):
        parts = [fold(p.name, bool(p.args.get("quoted")), dialect) for p in node.parts]
        types_of_columns = {}
        for name, text in types(".".join(parts)).items():
            try:
                types_of_columns[name] = data_type(text, dialect).sql()
            except (SqlglotError, ValueError):
                continue
        by_alias[node.alias_or_name] = types_of_columns
    return by_alias


def _are_apart(tree: Any) -> bool:
    """Whether each column has a source, and each source an alias of its own.

    A ``*`` inside of an expression, `to_json(struct(*))`, reads columns that are not written.
    """
    aliases = [
        source.this.alias_or_name
        for source in tree.find_all(exp.From, exp.Join)
        if isinstance(source.this, (exp.Table, exp.Subquery))
    ]
    if len(set(aliases)) < len(aliases):
        return False
    for star in tree.find_all(exp.Star):
        holder = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
        if not isinstance(holder, (exp.Select, exp.Count)):
            return False
    for column in tree.find_all(exp.Column):
        if not column.table:
            order = column.find_ancestor(exp.Order, exp.Select)
            select = order.parent if isinstance(order, exp.Order) else None
            if not isinstance(select, exp.Query) or column.name not in select.named_selects:
                return False
    return True


def _query_of(tree: Any) -> Any:
    """The query of a statement; None where it is no query alone."""
    return tree if isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery)) else None


def _linked(
    lowered: Lowered, dialect: str, table: FindTable, *, in_any_order: bool = False
) -> Linked | None:
    if lowered.rel is None:
        return None
    linked = link(lowered, table, dialect, in_any_order=in_any_order)
    return None if linked.missing or linked.unknown or linked.relation.unlisted else linked


def _is_same(linked: Linked | None, plain: Linked) -> bool:
    if linked is None:
        return False
    return _seen_by_readers(linked.relation) == _seen_by_readers(plain.relation)


def _seen_by_readers(relation: Relation) -> tuple[object, ...]:
    rows = relation.rows
    return (relation.keys, relation.fps, rows.fp, rows.order, rows.incidental)


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
        if relation.unlisted:
            return None
        if not node.alias:
            node.set("alias", exp.TableAlias(this=node.this.copy()))
        placeholder = f"t{len(real)}__"
        real[placeholder] = node.this, node.args.get("db"), node.args.get("catalog")
        node.set("this", exp.to_identifier(placeholder))
        node.set("db", None)
        node.set("catalog", None)
        schema[placeholder] = dict.fromkeys(relation.names, "unknown")
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
            canonicalize_table_aliases=True,
        )
    except Exception:  # of a query that sqlglot's optimizer does not expect
        return None
    for node in copy.find_all(exp.Table):
        real_parts = real.get(node.name)
        if real_parts is not None:
            for name, value in zip(("this", "db", "catalog"), real_parts, strict=True):
                node.set(name, value.copy() if value is not None else None)
    return copy
