"""What somebody edited: the causes of a change, each with what stood there before and what stands there now.

A change spreads from the nodes where it began (`changes.change_paths`). Such a node has causes: all that enters
what it is built from is compared, by kind, and what differs is one. Where nothing that was written differs,
what does is said instead: the compiled SQL, what dbt looked at while it compiled. So no change is
without a cause.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.artifacts import Macro, Node, Project, References
from dbt_ripple.artifacts.source_locations import Places
from dbt_ripple.changes.compile_inputs import asked_of_graph, defined
from dbt_ripple.changes.dbt_vars import Variables
from dbt_ripple.graph.config_fingerprints import NAMING, hooks_of
from dbt_ripple.graph.macros import INTERNAL, Macros, dispatched
from dbt_ripple.graph.node_properties import DESCRIBING, kind_of, of_name
from dbt_ripple.jinja.facts import ANY, facts_of
from dbt_ripple.jinja.reads import asks_the_graph
from dbt_ripple.jinja.text import normalised

if TYPE_CHECKING:
    from dbt_ripple.changes.compare import Comparison
    from dbt_ripple.changes.removed_columns import MissingNames

MISSING: Final = object()
_NOTHING: Final[tuple[Any, ...]] = (MISSING, None, [], {}, "")
_PROPERTIES: Final = (
    *(
        "contract",
        "constraints",
        "quoting",
        "version",
        "returns",
        "arguments",
        "database",
        "schema",
    ),
    *("identifier", "external", "unrendered_database", "unrendered_schema", "loaded_at_field"),
    *("loaded_at_query", "freshness", "given", "expect", "overrides", "model", "column_name"),
    *("entities", "dimensions", "measures", "defaults", "primary_entity", "type", "type_params"),
    *("filter", "query_params", "time_spine", "source_name"),
)
_PLACE_OF_SOURCE: Final = ("database", "schema", "identifier", "quoting")
_DESCRIPTIONS: Final = (
    *(
        "description",
        "access",
        "deprecation_date",
        "group",
        "meta",
        "tags",
        "owner",
        "label",
        "url",
    ),
    *("maturity", "latest_version", "fqn", "source_description", "loader", "original_file_path"),
)
_OF_COLUMNS: Final = ("data_type", "constraints", "quote", "granularity", "more")
_CONFIG: Final = re.compile(r"\{\{-?\s*config\s*\(.*?\)\s*-?\}\}", re.S)
_COMMENT: Final = re.compile(r"\s*(?:--.*|\{#.*#\}\s*|/\*.*\*/\s*)?")
_LONGEST: Final = 2_000
_HUNKS: Final = 20


class Cause(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that differs between base and head, and the nodes that are not the same because of it.

    Attributes:
        kind: ``code`` (lines of a node's own file), ``config`` (a key), ``property`` (what a yml file declares besides),
            ``column`` (likewise, of a column), ``argument`` (of a generic test), ``ref`` (what a reference means),
            ``macro``, ``dispatch`` (which package's macro runs), ``var``, ``env_var``, ``hook`` (of a run), ``seed``
            (rows of its file), ``file`` (that a query reads), ``graph`` (a property of another node, which Jinja reads), ``catalog`` (a column of a source), ``profile`` (a
            setting of the target), ``new`` and ``removed`` (a node), ``dbt`` (its version),
            ``compiled`` (what dbt or the warehouse answered while it compiled: nothing that was written differs).
        name: of it: a config key, a macro, a var, ``column.data_type``; of code the node.
        before: as it was on base; None where it was not there.
        after: as it is on head; None where it is not there any more.
        file: where it stands, relative to the project; None where no file of the project has it, or it cannot be told.
        line: the line of it, from 1; None where it cannot be told.
        through: of a macro, those by which the first of the nodes calls it, from the node on.
        nodes: the unique_ids of the nodes that are not the same because of it, in the order of the answer.
    """

    kind: str
    name: str
    before: str | None = None
    after: str | None = None
    file: str | None = None
    line: int | None = None
    through: list[str] = []
    nodes: list[str] = []

    def same_thing(self) -> tuple[Any, ...]:
        """What two causes are one by."""
        return self.kind, self.name, self.before, self.after, self.file, self.line


class Causes:
    """The causes of the changes of one comparison.

    Args:
        comparison: of base and head.
        project_dir: where head's files are; a line is told where they are as dbt has read them.
    """

    def __init__(self, comparison: Comparison, project_dir: Path | None = None) -> None:
        self.comparison = comparison
        self.base: Project = comparison.base
        self.head: Project = comparison.head
        self.places = Places(self.head, self.base, project_dir or Path())
        self._found: dict[str, list[Cause]] = {}

    def began(self) -> list[str]:
        """The relations at which a change began, in the order of head's lineage, then those that only base has."""
        comparison = self.comparison
        starts = {v[0] for v, before in comparison.predecessors.items() if before is None}
        for unique_id, change in comparison.changed.items():
            columns = change.removed or change.renamed or change.reordered
            if columns and unique_id in comparison.modified:
                starts.add(unique_id)
        if comparison.everything:
            starts.update(hook.owner for hook in comparison.hooks if hook.anything)
        ordered = [u for u in comparison.changed if u in starts]
        return [*ordered, *sorted(starts - {*ordered}), *comparison.removed]

    def of_all(self, unique_ids: Iterable[str]) -> list[Cause]:
        """The causes of some nodes, each once, with the nodes that are not the same because of it."""
        merged: dict[tuple[Any, ...], Cause] = {}
        for unique_id in dict.fromkeys(unique_ids):
            for cause in self.of(unique_id):
                key = cause.same_thing()
                there = merged.get(key)
                nodes = [*(there.nodes if there is not None else ()), unique_id]
                merged[key] = msgspec.structs.replace(there or cause, nodes=nodes)
        return list(merged.values())

    def of(self, unique_id: str) -> list[Cause]:
        """The causes of one node, what was written first; there is at least one of a node that changed by itself."""
        if unique_id not in self._found:
            self._found[unique_id] = []  # a hook may write to what it reads
            self._found[unique_id] = self._of(unique_id)
        return self._found[unique_id]

    def _of(self, unique_id: str) -> list[Cause]:
        then, now = self.base.nodes.get(unique_id), self.head.nodes.get(unique_id)
        if now is None:
            node = then or Node(name=unique_id)
            return [Cause(kind="removed", name=node.display_name, file=self._file(node))]
        if then is None and (before := self._test_it_was(now)) is not None:
            return [*self._arguments(before, now), *self._config(before, now)]
        if then is None:
            place = self.places.declared(now) if now.original_file_path.endswith("ml") else None
            file, line = place or (self._file(now), None)
            return [Cause(kind="new", name=now.display_name, file=file, line=line)]
        causes = [
            *self._sides(),
            *self._config(then, now),
            *self._code(then, now),
            *self._seed(then, now),
            *self._properties(then, now, _PROPERTIES),
            *self._columns(then, now),
            *self._arguments(then, now),
            *self._references(then, now),
            *self._sources(then, now),
            *self._macros(then, now),
            *self._named_values(now),
            *self._hooks(now),
            *self._graph(now),
            *self._catalog(now),
        ]
        if not causes:
            causes += self._config(then, now, describing=True)
            causes += self._properties(then, now, _DESCRIPTIONS)
        if not causes:  # it reads what is gone
            for gone in self._unfound.of(unique_id):
                causes += self.of(gone.unique_id)
        return causes or [*self._compiled(then, now)]

    @cached_property
    def _unfound(self) -> MissingNames:
        from dbt_ripple.changes.removed_columns import MissingNames  # which compares by this

        return MissingNames(self.comparison)

    # -- kinds of causes ----------------------------------------------------------------------------

    def _sides(self) -> Iterator[Cause]:
        """What differs for all nodes."""
        before, now = self.base.metadata, self.head.metadata
        if before.dbt_version != now.dbt_version:
            yield Cause(kind="dbt", name="dbt", before=before.dbt_version, after=now.dbt_version)
        for key, value in self.base.session.items():
            after = self.head.session[key] or None
            yield Cause(kind="profile", name=key, before=value or None, after=after)

    def _code(self, then: Node, now: Node) -> Iterator[Cause]:
        if normalised(then.raw_code) == normalised(now.raw_code) or then.resource_type == "seed":
            return
        if now.resource_type == "test" and now.test_metadata is not None:
            return
        kind = "hook" if now.resource_type == "operation" else "code"
        settings = [
            range(text.count("\n", 0, m.start()), text.count("\n", 0, m.end()) + 1)
            for text in (now.raw_code,)
            for m in _CONFIG.finditer(text)
        ]
        has_config = then.config != now.config
        for line, before, after in hunks(then.raw_code, now.raw_code):
            if has_config and any(line - 1 in lines for lines in settings):
                continue
            file = self._file(now)
            at = self.places.line_in_file(file, now.raw_code, line) if file else None
            yield Cause(
                kind=kind, name=now.display_name, before=before, after=after, file=file, line=at
            )

    def _config(self, then: Node, now: Node, *, describing: bool = False) -> Iterator[Cause]:
        for key in sorted({*then.config, *now.config}):
            before, after = (n.config.get(key, MISSING) for n in (then, now))
            if _equal(before, after):
                continue
            if (key in DESCRIBING) != describing:
                continue
            written = [
                n.unrendered_config.get(key, n.config.get(key, MISSING)) for n in (then, now)
            ]
            if written[0] == written[1] and isinstance(written[1], str) and "{{" in written[1]:
                facts = facts_of(written[1])
                yield from self._values(facts.variables, facts.environment)
                written = [before, after]
            file, line = self._place_of_config(now if after is not MISSING else then, key)
            yield Cause(
                kind="config",
                name=key,
                before=_shown(written[0]),
                after=_shown(written[1]),
                file=file,
                line=line,
            )

    def _place_of_config(self, node: Node, key: str) -> tuple[str | None, int | None]:
        """Where a setting of a node is written: in its own file, in a yml file, or in the project file."""
        file = self._file(node)
        called = _CONFIG.search(node.raw_code)
        word = re.compile(rf"\b{re.escape(key.replace('-', '_'))}\b\s*=")
        in_yml = file is not None and file.endswith((".yml", ".yaml"))
        if (
            called is not None
            and file
            and not in_yml
            and (at := word.search(called[0])) is not None
        ):
            line = node.raw_code.count("\n", 0, called.start() + at.start()) + 1
            return file, self.places.line_in_file(file, node.raw_code, line)
        declared = self.places.declared(node, key=key)
        if declared is None and node.package_name == self.head.name:
            section = {"analysis": "analyses"}.get(node.resource_type, f"{node.resource_type}s")
            section = "data_tests" if section == "tests" else section
            declared = self.places.in_project_file(section, *node.fqn, key)
        return declared or (file, None)

    def _seed(self, then: Node, now: Node) -> Iterator[Cause]:
        if now.resource_type != "seed":
            return
        seeds = self.comparison.seeds
        texts = [
            (side.content(node) or b"").decode("utf-8", "replace")
            for side, node in ((seeds.base, then), (seeds.head, now))
        ]
        if then.checksum == now.checksum:
            return
        file = self._file(now)
        if not all(texts):  # a file is not at hand, or too large to have a checksum
            yield Cause(kind="seed", name=now.name, file=file)
            return
        for line, before, after in hunks(*texts, comments=False):
            yield Cause(
                kind="seed", name=now.name, before=before, after=after, file=file, line=line
            )

    def _properties(self, then: Node, now: Node, names: Iterable[str]) -> Iterator[Cause]:
        for name in names:
            before, after = getattr(then, name), getattr(now, name)
            if name in ("database", "schema") and now.resource_type != "source":
                continue  # what the target and the config say of it
            if name == "contract":
                before, after = before.enforced, after.enforced
                if then.config.get("contract") != now.config.get("contract"):
                    continue
            if not _equal(before, after):
                place = self.places.declared(now, key=name) or self.places.declared(now)
                file, line = place or (self._file(now), None)
                yield Cause(
                    kind="property",
                    name=name.removeprefix("unrendered_"),
                    before=_shown(before),
                    after=_shown(after),
                    file=file,
                    line=line,
                )

    def _columns(self, then: Node, now: Node) -> Iterator[Cause]:
        for name in dict.fromkeys((*then.columns, *now.columns)):
            before, after = then.columns.get(name), now.columns.get(name)
            declared = now.contract_enforced or then.contract_enforced
            for field in _OF_COLUMNS:
                values = [getattr(c, field) if c is not None else None for c in (before, after)]
                if _equal(*values) or (field == "data_type" and not declared):
                    continue
                place = self.places.declared(now, name) or self.places.declared(now)
                file, line = place or (self._file(now), None)
                yield Cause(
                    kind="column",
                    name=f"{name}.{field}",
                    before=_shown(values[0]),
                    after=_shown(values[1]),
                    file=file,
                    line=line,
                )

    def _arguments(self, then: Node, now: Node) -> Iterator[Cause]:
        arguments = [n.test_metadata.kwargs if n.test_metadata else {} for n in (then, now)]
        place = self.places.declared(now) if arguments[0] != arguments[1] else None
        for key in dict.fromkeys((*arguments[0], *arguments[1])):
            before, after = (of_side.get(key, MISSING) for of_side in arguments)
            if before != after:
                file, line = place or (self._file(now), None)
                yield Cause(
                    kind="argument",
                    name=key,
                    before=_shown(before),
                    after=_shown(after),
                    file=file,
                    line=line,
                )

    def _test_it_was(self, now: Node) -> Node | None:
        """The generic test of base that a test of head stands for: dbt makes arguments part of its id."""
        kind = now.test_metadata and now.test_metadata.name
        return self._tests_gone.get((now.attached_node, now.column_name, kind)) if kind else None

    @cached_property
    def _tests_gone(self) -> dict[tuple[str | None, str | None, str | None], Node]:
        """The generic tests that only base has, by what they are of, where that is one test."""
        found: dict[tuple[str | None, str | None, str | None], list[Node]] = {}
        for side, other in ((self.base, self.head), (self.head, self.base)):
            for test in side.of_type("test"):
                if test.unique_id not in other.nodes and test.test_metadata is not None:
                    key = (test.attached_node, test.column_name, test.test_metadata.name)
                    found.setdefault(key, []).append(test)
        return {
            key: tests[0]
            for key, tests in found.items()
            if len(tests) == 2 and tests[0].unique_id in self.base.nodes
        }

    def _references(self, then: Node, now: Node) -> Iterator[Cause]:
        if len(then.refs) != len(now.refs):
            return  # its code says so
        meant = zip(now.refs, then.refs, *self._meant(then, now), strict=False)
        for ref, was, before, after in meant:
            if before == after or ref != was:
                continue
            target = self.head.nodes.get(after)
            place = self.places.declared(target, key="latest_version") if target else None
            file, line = place or (self._file(now), None)
            yield Cause(
                kind="ref",
                name=f"ref('{ref.name}')",
                before=self._name(self.base, before),
                after=self._name(self.head, after),
                file=file,
                line=line,
            )

    def _sources(self, then: Node, now: Node) -> Iterator[Cause]:
        """Where the sources are that it reads, or that are the relation which it builds."""
        for unique_id, (before, after) in self._moved_sources.items():
            names = {before.relation_name, after.relation_name} - {None}
            if unique_id in now.depends_on.nodes or not names.isdisjoint(
                (then.relation_name, now.relation_name)
            ):
                yield from self._properties(before, after, _PLACE_OF_SOURCE)

    @cached_property
    def _moved_sources(self) -> dict[str, tuple[Node, Node]]:
        pairs = {
            n.unique_id: (self.base.nodes.get(n.unique_id), n) for n in self.head.of_type("source")
        }
        return {
            unique_id: (before, after)
            for unique_id, (before, after) in pairs.items()
            if before is not None and before.relation_name != after.relation_name
        }

    def _meant(self, then: Node, now: Node) -> tuple[list[str], list[str]]:
        return self._resolved[0].of(then), self._resolved[1].of(now)

    @cached_property
    def _resolved(self) -> tuple[References, References]:
        return References(self.base), References(self.head)

    def _macros(self, then: Node, now: Node) -> Iterator[Cause]:
        reached = self._reached(then, 0) | self._reached(now, 1)
        base, head = self._sides_macros
        for unique_id in sorted(reached):
            before, after = base.macros.get(unique_id), head.macros.get(unique_id)
            either = after or before
            if either is None or either.package_name in INTERNAL:
                continue
            if before and after and base.text(unique_id) == head.text(unique_id):
                continue
            yield from self._of_macro(unique_id, before, after, now)
        if self.base.macro_order != self.head.macro_order and not head.in_order.isdisjoint(reached):
            file, line = self.places.in_project_file("dispatch") or ("dbt_project.yml", None)
            yield Cause(
                kind="dispatch",
                name="dispatch",
                before=self.base.macro_order,
                after=self.head.macro_order,
                file=file,
                line=line,
            )

    def _of_macro(
        self, unique_id: str, before: Macro | None, after: Macro | None, node: Node
    ) -> Iterator[Cause]:
        macro = after or before
        assert macro is not None
        own = macro.package_name == self.head.name
        name = macro.name if own else f"{macro.package_name}.{macro.name}"
        file = self._in_package(macro.package_name, macro.original_file_path)
        texts = [m.macro_sql if m is not None else "" for m in (before, after)]
        through = self._way(node, unique_id)
        for line, was, is_now in list(hunks(*texts))[:1] if before and after else [(1, None, None)]:
            at = self.places.line_in_file(file, texts[1], line) if file and after else None
            yield Cause(
                kind="macro",
                name=name,
                before=was if after else _shown(texts[0]),
                after=is_now if before else _shown(texts[1]),
                file=file,
                line=at,
                through=through,
            )

    def _reached(self, node: Node, side: int) -> set[str]:
        """The macros that a node may run on a side: in its text, its hooks and its materialization."""
        macros = self._sides_macros[side]
        start = [*node.depends_on.macros]
        for _, sql in hooks_of(node):
            start += macros.named_in(sql)
        if node.resource_type == "operation" or node.config.get("sql_header"):
            start += macros.named_in(f"{node.raw_code}\n{node.config.get('sql_header') or ''}")
        naming = (u for u in macros.user if NAMING.match(dispatched(macros.macros[u].name)))
        return {*macros.closure([*start, *naming]), *macros.run_by(kind_of(node))}

    @property
    def _sides_macros(self) -> tuple[Macros, Macros]:
        return self.comparison.base_context.macros, self.comparison.head_context.macros

    def _way(self, node: Node, macro: str) -> list[str]:
        """The macros by which a node calls another, by their names; empty where it calls it itself."""
        macros = self.head.macros
        level: dict[str, list[str]] = {u: [] for u in node.depends_on.macros}
        seen = dict(level)
        while level and macro not in seen:
            below: dict[str, list[str]] = {}
            for unique_id, way in level.items():
                called = macros[unique_id].depends_on.macros if unique_id in macros else ()
                for each in called:
                    if each not in seen and each not in below:
                        below[each] = [*way, macros[unique_id].name]
            seen |= below
            level = below
        return seen.get(macro, [])

    def _named_values(self, now: Node) -> Iterator[Cause]:
        texts = [now.raw_code, *(sql for _, sql in hooks_of(now))]
        macros = self._sides_macros[1]
        texts += [macros.macros[u].macro_sql for u in self._reached(now, 1) & macros.user]
        facts = [facts_of(text) for text in texts]
        variables = {name for each in facts for name in each.variables}
        yield from self._values(variables, {name for each in facts for name in each.environment})

    def _values(self, variables: Iterable[str], environment: Iterable[str]) -> Iterator[Cause]:
        """The vars and environment variables of these names that differ."""
        sides = self._variables
        for name in _asked(sides, variables):
            place = self.places.in_project_file("vars", self.head.name or "", name)
            file, line = place or (None, None)
            before, after = (_value(side.get(name)) for side in sides)
            yield Cause(kind="var", name=name, before=before, after=after, file=file, line=line)
        sides = self.base.environment, self.head.environment
        for name in _asked(sides, environment):
            before, after = (side.get(name) for side in sides)
            yield Cause(kind="env_var", name=name, before=before, after=after)

    @cached_property
    def _variables(self) -> tuple[dict[str, str], dict[str, str]]:
        """The vars of both sides that differ, as far as they are known or dbt's files tell."""
        if self.base.variables is not None and self.head.variables is not None:
            return self.base.variables, self.head.variables
        before, now = Variables(self.base, self.head).differing() or ({}, {})
        names = {n for n in (*before, *now) if before.get(n) != now.get(n)}
        return {n: before.get(n, "") for n in names}, {n: now.get(n, "") for n in names}

    def _hooks(self, now: Node) -> Iterator[Cause]:
        """What hooks of other nodes that may write to it do otherwise."""
        before = {hook.owner: hook.text for hook in self.comparison.base_context.hooks_that_write}
        for hook in self.comparison.hooks:
            writes = now.unique_id in hook.writes or hook.anything
            if writes and hook.owner != now.unique_id and before.get(hook.owner) != hook.text:
                yield from (c for c in self.of(hook.owner) if c.kind != "compiled")
        for file in sorted({*self.base.files, *self.head.files}):
            if self.base.files.get(file) != self.head.files.get(file) and file in (
                now.compiled_code or now.raw_code
            ):
                yield Cause(kind="file", name=file, file=file)

    def _graph(self, now: Node) -> Iterator[Cause]:
        """What it reads of other nodes by ``graph``, and differs."""
        macros = self._sides_macros[1]
        texts = [now.raw_code]
        texts += [macros.macros[u].macro_sql for u in self._reached(now, 1) & macros.user]
        for reads, types in map(asked_of_graph, filter(asks_the_graph, texts)):
            for then, other in self._differing:
                if types is not None and other.resource_type not in types:
                    continue
                names = [
                    name
                    for name in sorted(reads.names)
                    if of_name(then, name) != of_name(other, name)
                ]
                for cause in (
                    *self._config(then, other, describing=True),
                    *self._config(then, other),
                    *self._properties(then, other, _DESCRIPTIONS),
                ):
                    if cause.name in names:
                        names.remove(cause.name)
                        read = f"{other.display_name}.{cause.name}"
                        yield msgspec.structs.replace(cause, kind="graph", name=read)

    @cached_property
    def _differing(self) -> list[tuple[Node, Node]]:
        pairs = ((self.base.nodes.get(u), node) for u, node in self.head.nodes.items())
        return [(a, b) for a, b in pairs if a is not None and defined(a) != defined(b)]

    def _catalog(self, now: Node) -> Iterator[Cause]:
        """The columns of a source, as the warehouse lists them."""
        if now.resource_type != "source":
            return
        sides = [
            {c.name: c.type for c in side.catalog.get(now.unique_id, ())}
            for side in (self.base, self.head)
        ]
        for name in dict.fromkeys((*sides[0], *sides[1])):
            before, after = (side.get(name, MISSING) for side in sides)
            if before != after:
                yield Cause(kind="catalog", name=name, before=_shown(before), after=_shown(after))

    def _compiled(self, then: Node, now: Node) -> Iterator[Cause]:
        """Where nothing that was written differs: what the SQL was compiled to."""
        texts = [n.compiled_code or "" for n in (then, now)]
        for _, before, after in list(hunks(*texts))[:1]:
            yield Cause(kind="compiled", name=now.display_name, before=before, after=after)

    # -- places and names ---------------------------------------------------------------------------

    def _file(self, node: Node) -> str | None:
        return self._in_package(node.package_name, node.original_file_path)

    def _in_package(self, package: str, path: str) -> str | None:
        """A file of a package as it is called in the project."""
        if not path or package in INTERNAL:
            return None
        path = path.removeprefix("./")
        return path if package == self.head.name else f"dbt_packages/{package}/{path}"

    def _name(self, side: Project, unique_id: str) -> str:
        node = side.nodes.get(unique_id)
        return node.display_name if node is not None else unique_id


def hunks(
    before: str, after: str, *, comments: bool = True
) -> Iterator[tuple[int, str | None, str | None]]:
    r"""Where two texts differ: a line of the second, what stands there in the first, and in the second.

    Of lines that are only laid out otherwise, or are comments, nothing, unless there is nothing else.

    Example:
        >>> list(hunks("a\nb\nc", "a\nB\nc"))
        [(2, 'b', 'B')]
        >>> list(hunks("a\nb", "-- why\na\nb\nc"))
        [(4, None, 'c')]
    """
    then, now = before.splitlines(), after.splitlines()
    found, plain = [], []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, then, now, False).get_opcodes():
        if tag == "equal":
            continue
        hunk = min(k + 1, max(len(now), 1)), _lines(then[i:j]), _lines(now[k:m])
        found.append(hunk)
        same = "".join("".join(then[i:j]).split()) == "".join("".join(now[k:m]).split())
        silent = comments and all(map(_COMMENT.fullmatch, (*then[i:j], *now[k:m])))
        if not same and not silent:
            plain.append(hunk)
    yield from (plain or found)[:_HUNKS]


def _equal(before: Any, after: Any) -> bool:
    """Whether two values are the same, or both none at all."""
    return bool(before == after) or (before in _NOTHING and after in _NOTHING)


def _lines(lines: list[str]) -> str | None:
    text = "\n".join(line.rstrip() for line in lines).strip()
    return text[:_LONGEST] or None


def _shown(value: Any) -> str | None:
    """A value as a person writes it; None for nothing."""
    if value is None or value is MISSING:
        return None
    if isinstance(value, str):
        return value[:_LONGEST]
    try:
        return msgspec.json.encode(value).decode()[:_LONGEST]
    except (TypeError, ValueError):
        return str(value)[:_LONGEST]


def _asked(sides: tuple[dict[str, str], dict[str, str]], names: Iterable[str]) -> list[str]:
    """Those of the names that differ between the sides."""
    wanted = {*names}
    differ = sorted({*sides[0], *sides[1]})
    return [n for n in differ if n in wanted or ANY in wanted or n == ANY]


def _value(text: str | None) -> str | None:
    """A var's value of what `changes.dbt_vars.vars_by_name` keeps of it."""
    if not text:
        return None
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text[:_LONGEST]
    return _shown(values[0] if isinstance(values, list) and len(values) == 1 else values)
