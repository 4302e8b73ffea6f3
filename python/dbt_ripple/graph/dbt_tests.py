"""What data tests and unit tests read, and their fingerprints (rule 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.relation import Deps, Relation, unlisted_fp
from dbt_ripple.graph.hooks import hooks_that_write, not_followed
from dbt_ripple.graph.jinja import normalised
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis, UnitTestAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.lineage_tests import LineageJudge, is_lineage_test, lineage_tests
from dbt_ripple.graph.linker import Linker, NodeTableResolver
from dbt_ripple.graph.node_properties import of_test, place
from dbt_ripple.graph.normalized_code import type_text
from dbt_ripple.graph.relations import RELATIONS, why_unreadable
from dbt_ripple.graph.sources_and_seeds import where_it_is
from dbt_ripple.graph.unresolved_names import unresolved_names
from dbt_ripple.reasons import Code, Reason


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


class _FixtureResolver(NodeTableResolver):
    """A model whose parents are replaced by fixtures: of these it sees the names (rule 9)."""

    __slots__ = ()

    def table(self, key: str, name: str) -> Relation:
        relation = super().table(key, name)
        unique_id = self.analyser.names.node_of(key)
        if unique_id is None or unique_id == self.unique_id:
            return relation
        leaf = digest(b"given", unique_id.encode())
        given = Relation(
            relation.names,
            relation.keys,
            [digest(b"given", unique_id.encode(), k.encode()) for k in relation.keys],
            relation.deps,
            [_UnlistedFixtureColumns(unique_id)] if relation.unlisted else [],
            leaf,
            relation.rows,
            leaf,
        )
        given.fields = relation.fields
        return given

    def view(self, key: str, name: str) -> bytes | None:
        unique_id = self.analyser.names.node_of(key)
        if unique_id is None or unique_id == self.unique_id:
            return super().view(key, name)
        relation = self.analyser.node(unique_id).relation
        if relation.unlisted:
            return None
        parts = (
            part.encode()
            for pair in zip(relation.keys, relation.names, strict=True)
            for part in pair
        )
        return digest(b"given", unique_id.encode(), *parts)


class TestLinker(Linker):
    """Links tests, too."""

    def may_discover(self, unique_id: str) -> bool:
        """Whether a test can show a column that nothing lists: it reads an open relation."""
        parents = (self.names.canonical.get(p, p) for p in self.project.parents.get(unique_id, ()))
        known = (self.linked_nodes.get(p) for p in parents)
        return any(k is not None and k.relation.unlisted for k in known)

    def test(self, unique_id: str, node: Node) -> tuple[NodeAnalysis, list[tuple[str, str]]]:
        """A test's fingerprint and what it reads: the columns and row sets its query depends on."""
        if is_lineage_test(node):
            return self.of_lineage(unique_id, node)
        followed = self.follow(unique_id, node)
        reads: dict[tuple[str, str], None] = {}
        if isinstance(followed, Reason):
            opaque = self.opaque(unique_id, node, followed)
            reads.update(dict.fromkeys(opaque.rows))
            analysis = opaque.analysis
        else:
            _, linked = followed
            relation = linked.relation
            for deps in (relation.rows, *relation.deps):
                reads.update(dict.fromkeys(deps))
            names, fps = list(relation.names), [fp.hex() for fp in relation.fps]
            if relation.unlisted:  # what a test shows counts, with or without a name
                names.append("*")
                fps.append(unlisted_fp(relation.unlisted).hex())
            rows_fp = relation.rows_fp
            config = self.settings.of(node)
            looks = self.introspection.of(node)
            besides_query = self.besides_query(unique_id, node, looks)
            beyond = self.beyond(unique_id, node, looks)
            if config or besides_query or beyond:
                rows_fp = digest(b"aside", rows_fp, config, besides_query, self.all_of(beyond))
            introspects: list[str] = []
            if besides_query:
                introspects += self.relations_above(unique_id)
                introspects += self.named_by_jinja(unique_id, node, looks)
            reason: Reason | None = None
            if beyond:
                reads.update(dict.fromkeys(self.deps_of(beyond.whole)))
                introspects += [u for u in beyond.whole if u not in introspects]
                reason = self.said_of(beyond)
            missing = unresolved_names(self, unique_id, node) if linked.missing else []
            analysis = NodeAnalysis(
                unique_id,
                "broken" if missing else "analysed",
                Code.CANNOT_FIND(names=missing) if missing else reason,
                names,
                fps,
                [None] * len(names),
                rows_fp.hex(),
                introspects=introspects,
                unresolved_names=[name for name in linked.missing if name not in missing],
                introspection_fingerprint=besides_query.hex(),
            )
        return analysis, list(reads)

    def of_lineage(self, unique_id: str, node: Node) -> tuple[NodeAnalysis, list[tuple[str, str]]]:
        """A test that asks where a column comes from; `judge_lineage` adds where it does."""
        called = self.macros.fingerprint(node.depends_on.macros)
        asks = next((t for t in lineage_tests(self.project, [node])), None)
        parts = repr(asks and asks.asks).encode("utf-8", "surrogatepass")
        reads = [] if asks is None else [(asks.node, asks.column)]
        fingerprint = digest(b"lineage", parts, called).hex()
        return NodeAnalysis(unique_id, "analysed", rows_fingerprint=fingerprint), reads

    def unit_test(self, unique_id: str, node: Node) -> UnitTestAnalysis | None:
        """Rule 9: the model's own query over named columns, the fixture, what dbt types it by.

        None where the manifest does not hold the model.
        """
        models = [
            p
            for p in self.project.parents.get(unique_id, ())
            if self.project.nodes[p].resource_type == "model"
        ]
        tested = [p for p in models if self.project.nodes[p].name == node.model] or models
        if not tested:
            return None
        model = self.project.nodes[tested[0]]
        parts = [
            repr((node.given, node.expect, node.overrides)).encode(),
            self.settings.of(model, columns=True),
            self.macros.of_materialization("unit"),
            *self.where_inputs_are(model.unique_id),
            repr(sorted(of_test(node).items())).encode(),
            *map(self.function, self.functions_above(model.unique_id)),
        ]
        reads: dict[tuple[str, str], None] = {}
        followed: tuple[dict[str, str], Linked] | Reason | None = why_unreadable(model)
        if followed is None:
            reader = _FixtureResolver(self, model.unique_id)
            try:
                followed = self.queries.follow(model.compiled_code or "", reader)
            except Exception as error:  # as in `follow`
                followed = Code.DEFECT(error=f"{type(error).__name__}: {error}")
            beyond = self.beyond(model.unique_id, model, self.introspection.of(model))
            parts.append(self.all_of(beyond))  # no fixture stands in for what is read unnamed
        if isinstance(followed, Reason) or node.overrides:
            # Overridden macros and vars compile to another text than the one at hand.
            macros = self.macros
            parts += [
                normalised(model.raw_code).encode(),
                macros.variables(model.raw_code).encode(),
                macros.fingerprint(model.depends_on.macros),
            ]
        if not isinstance(followed, Reason):
            relation = followed[1].relation
            parts += [relation.rows_fp, *(m.encode() for m in followed[1].missing)]
            parts += sorted(
                digest(key.encode(), fp)
                for key, fp in zip(relation.keys, relation.fps, strict=True)
            )
            parts.append(unlisted_fp(relation.unlisted))
            for deps in (relation.rows, *relation.deps):
                reads.update(dict.fromkeys(deps))
        types: dict[tuple[str, str], str] = {}
        inputs: list[tuple[str, str]] = []
        read = {(parent, column.lower()) for parent, column in reads}
        given = {str(k).lower() for g in node.given for k in _given_columns(g)}
        all_given = any(not isinstance(g.get("rows"), list) for g in node.given)
        for parent in self.relations_above(model.unique_id):
            linked = self.node(parent)
            for name, type_ in self.types(parent, linked.relation.names).items():
                if all_given or name in given or (parent, name) in read:
                    parts.append(digest(parent.encode(), name.encode()))
                    inputs.append((parent, name))
                    if type_:
                        types[parent, name] = type_
        return UnitTestAnalysis(unique_id, tested[0], digest(*parts).hex(), types, inputs)

    def where_inputs_are(self, model: str) -> list[bytes]:
        """Where the relations are whose columns dbt looks up to type a fixture by.

        Of one that is moved there are none, nor of one that is inlined.
        """
        nodes = self.project.nodes
        parts = [self.settings.naming]
        for unique_id in sorted({model, *self.project.parents.get(model, ())}):
            node = nodes[unique_id]
            if node.resource_type in RELATIONS:
                there = where_it_is(node) if node.resource_type == "source" else place(node)
                parts.append(digest(unique_id.encode(), repr((there, node.is_ephemeral)).encode()))
        return parts

    def types(self, unique_id: str, names: list[str]) -> dict[str, str]:
        """The types of a relation's columns by lower-case name, empty where they are not known."""
        node = self.project.nodes[unique_id]
        types = {
            c.name.lower(): (c.type or "").lower() for c in self.project.catalog.get(unique_id, ())
        }
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


def judge_lineage(project: Project, analysis: Analysis) -> None:
    """Make the fingerprints of tests of lineage differ wherever the lineage does."""
    tests = lineage_tests(project)
    if not tests:
        return
    judge = LineageJudge(project, analysis, (test.node for test in tests))
    for test in tests:
        seen = analysis.tests[test.unique_id]
        own = bytes.fromhex(seen.rows_fingerprint)
        analysis.tests[test.unique_id] = replace(
            seen, rows_fingerprint=digest(own, judge.judge(test).fingerprint).hex()
        )


def outcome_fingerprints(project: Project, tests: Mapping[str, NodeAnalysis]) -> dict[str, str]:
    """Of each data test, a hash of all that decides its outcome.

    It differs between two loads exactly where `selection.select` without facts selects the test:
    what its query reads and does, its own settings, and the hooks that may write to any relation.

    Args:
        project: its artifacts.
        tests: as they were analysed, by unique_id.
    """
    hooks = repr(not_followed(hooks_that_write(project))).encode()
    result = {}
    for unique_id, seen in tests.items():
        config = project.nodes[unique_id].config
        settings = sorted(of_test(project.nodes[unique_id]).items())
        by_name = config.get("fail_calc") not in (None, "count(*)")
        said = (
            seen.rows_fingerprint,
            seen.fingerprints,
            seen.reason and seen.reason.message,
            settings,
        )
        result[unique_id] = digest(
            b"test", repr(said).encode(), repr(seen.columns if by_name else ()).encode(), hooks
        ).hex()
    return result
