"""Unit tests: a model's own query over fixtures (rule 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.relation import (
    Deps,
    OutputColumn,
    Relation,
    RowSet,
    unlisted_fp,
)
from dbt_ripple.graph.lineage import UnitTestAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.functions import functions_called
from dbt_ripple.graph.linking.modes import NodeTableResolver
from dbt_ripple.graph.linking.node_parents import relations_above
from dbt_ripple.graph.linking.other_dependencies import unnamed_fingerprint, unnamed_reads
from dbt_ripple.graph.linking.sources import where_it_is
from dbt_ripple.graph.node_properties import of_test, place
from dbt_ripple.graph.normalized_code import type_text
from dbt_ripple.graph.relations import RELATIONS, why_unreadable
from dbt_ripple.jinja.text import normalised
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


def link_unit_test(linker: Linker, unique_id: str, node: Node) -> UnitTestAnalysis | None:
    """The model's own query over named columns, the fixture, and what dbt types it by.

    None where the manifest does not hold the model.
    """
    model = _tested_model(linker, unique_id, node)
    if model is None:
        return None
    context = linker.context
    parts = [
        repr((node.given, node.expect, node.overrides)).encode(),
        context.config_fingerprints.of(model, columns=True),
        context.macros.of_materialization("unit"),
        *_where_inputs_are(linker, model.unique_id),
        repr(sorted(of_test(node).items())).encode(),
        *functions_called(linker, model.unique_id),
    ]
    reads: dict[tuple[str, str], None] = {}
    query: Linked | Reason | None = why_unreadable(model)
    if query is None:
        query = _over_fixtures(linker, model)
        warehouse_reads = context.introspection.of(model)
        unnamed = unnamed_reads(linker, model.unique_id, model, warehouse_reads)
        # No fixture stands in for what is read unnamed.
        parts.append(unnamed_fingerprint(linker, unnamed))
    if isinstance(query, Reason) or node.overrides or query.missing:
        # Overridden macros and vars compile to another text than the one at hand.
        parts += [
            normalised(model.raw_code).encode(),
            context.macros.variables(model.raw_code).encode(),
            context.macros.fingerprint(model.depends_on.macros),
        ]
    if not isinstance(query, Reason):
        relation = query.relation
        parts.append(relation.rows.fp)
        parts += sorted(digest(column.key.encode(), column.fp) for column in relation.columns)
        parts.append(unlisted_fp(relation.unlisted))
        reads.update(dict.fromkeys(relation.reads()))
    types: dict[tuple[str, str], str] = {}
    inputs: list[tuple[str, str]] = []
    read = {(parent, column.lower()) for parent, column in reads}
    given = {str(k).lower() for g in node.given for k in _given_columns(g)}
    all_given = any(not isinstance(g.get("rows"), list) for g in node.given)
    for parent in relations_above(linker, model.unique_id):
        linked = linker.node(parent)
        for name, type_ in _types(linker, parent, linked.relation.names).items():
            if all_given or name in given or (parent, name) in read:
                parts.append(digest(parent.encode(), name.encode()))
                inputs.append((parent, name))
                if type_:
                    types[parent, name] = type_
    return UnitTestAnalysis(unique_id, model.unique_id, digest(*parts).hex(), types, inputs)


def _tested_model(linker: Linker, unique_id: str, node: Node) -> Node | None:
    """The model that a unit test tests."""
    nodes = linker.project.nodes
    parents = linker.project.parents.get(unique_id, ())
    models = [nodes[p] for p in parents if nodes[p].resource_type == "model"]
    tested = [model for model in models if model.name == node.model] or models
    return tested[0] if tested else None


def _over_fixtures(linker: Linker, model: Node) -> Linked | Reason:
    """A model's query, linked over fixtures; or why it cannot be followed."""
    resolver = _FixtureResolver(linker, model.unique_id)
    try:
        followed = linker.queries.follow(model.compiled_code or "", resolver)
    except Exception as error:  # as in `Linker.follow`
        return Code.DEFECT(error=f"{type(error).__name__}: {error}")
    return followed if isinstance(followed, Reason) else followed[1]


class _FixtureResolver(NodeTableResolver):
    """A model whose parents are replaced by fixtures: of these it sees the names (rule 9)."""

    __slots__ = ()

    def table(self, key: str, name: str) -> Relation:
        relation = super().table(key, name)
        unique_id = self.linker.names.node_of(key)
        if unique_id is None or unique_id == self.unique_id:
            return relation
        fixture = digest(b"given", unique_id.encode())
        given = Relation(
            [
                OutputColumn(
                    c.name, c.key, digest(b"given", unique_id.encode(), c.key.encode()), c.deps
                )
                for c in relation.columns
            ],
            RowSet.unjoined(fixture, relation.rows.deps, fixture),
            [_UnlistedFixtureColumns(unique_id)] if relation.unlisted else [],
        )
        given.fields = relation.fields
        return given

    def view(self, key: str, name: str) -> bytes | None:
        unique_id = self.linker.names.node_of(key)
        if unique_id is None or unique_id == self.unique_id:
            return super().view(key, name)
        relation = self.linker.node(unique_id).relation
        if relation.unlisted:
            return None
        parts = (
            part.encode()
            for pair in zip(relation.keys, relation.names, strict=True)
            for part in pair
        )
        return digest(b"given", unique_id.encode(), *parts)


class _UnlistedFixtureColumns:
    """Columns of a parent that a unit test replaces, found by their use: names, no values."""

    __slots__ = ("unique_id",)

    def __init__(self, unique_id: str) -> None:
        self.unique_id = unique_id

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        return digest(b"given", self.unique_id.encode(), key.encode()), {
            (self.unique_id, name): IDENTITY
        }

    def fp(self) -> bytes:
        return digest(b"given", self.unique_id.encode(), b"*")

    def whole(self) -> Deps:
        return {(self.unique_id, ROWS): IDENTITY}


def _where_inputs_are(linker: Linker, model: str) -> list[bytes]:
    """Where the relations are whose columns dbt looks up to type a fixture by.

    Of one that is moved there are none, nor of one that is inlined.
    """
    nodes = linker.project.nodes
    parts = [linker.context.config_fingerprints.naming(nodes[model].package_name)]
    for unique_id in sorted({model, *linker.project.parents.get(model, ())}):
        node = nodes[unique_id]
        if node.resource_type in RELATIONS:
            there = where_it_is(node) if node.resource_type == "source" else place(node)
            parts.append(digest(unique_id.encode(), repr((there, node.is_ephemeral)).encode()))
    return parts


def _types(linker: Linker, unique_id: str, names: list[str]) -> dict[str, str]:
    """The types of a relation's columns by lower-case name, empty where they are not known."""
    node = linker.project.nodes[unique_id]
    types = {c.name.lower(): (c.type or "").lower() for c in linker.catalog.get(unique_id, ())}
    if node.contract_enforced or not types:
        types |= {
            c.name.lower(): type_text(c.data_type) for c in node.columns.values() if c.data_type
        }
    return {name.lower(): types.get(name.lower(), "") for name in names}


def _given_columns(given: dict[str, Any]) -> set[str]:
    rows = given.get("rows")
    return (
        {key for row in rows if isinstance(row, dict) for key in row}
        if isinstance(rows, list)
        else set()
    )
