"""What somebody edited: the causes of a change, each with what stood there before and what stands there now.

A change spreads from the nodes where it began (`Comparison.predecessors`). Such a node has causes: all that enters
what it is built from is compared, by kind, and what differs is one. Where nothing that was written differs,
it is said what the SQL compiles to now. All that a node may run counts: of two macros that were edited, a
cause may be one that changes nothing of it.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import Node, Project, References
from dbt_ripple.artifacts.source_locations import PROJECT_FILE, Places
from dbt_ripple.changes.comparison import Comparison, made_once
from dbt_ripple.changes.compile_inputs import asked_of_graph, defined
from dbt_ripple.changes.dbt_vars import Variables
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.flow.statement_effects import ANY_NAME
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints, hooks_of
from dbt_ripple.graph.git import commits_of_lines, last_commit
from dbt_ripple.graph.linking.sources import where_it_is
from dbt_ripple.graph.macros import INTERNAL, Macros
from dbt_ripple.graph.node_properties import DESCRIBING, hooks_in, kind_of, of_name
from dbt_ripple.graph.traversal import breadth_first_tree
from dbt_ripple.jinja.facts import ANY, asks, asks_the_graph, facts_of
from dbt_ripple.jinja.kept import cached_method
from dbt_ripple.jinja.text import normalised
from dbt_ripple.secrets import setting_as_shown

MISSING: Final = object()
_NOTHING: Final[tuple[Any, ...]] = (MISSING, None, [], {}, "")
_WORD: Final = re.compile(r"\w+")
_CALL: Final = re.compile(r"""(\w+)["`]?\s*\(""")
_PROPERTIES: Final = tuple(
    """
    contract constraints quoting version returns arguments database schema identifier external unrendered_database
    unrendered_schema loaded_at_field loaded_at_query freshness given expect overrides model column_name entities
    dimensions measures defaults primary_entity type type_params filter query_params time_spine source_name
    """.split()
)
_PLACE_OF_SOURCE: Final = ("database", "schema", "identifier", "quoting")
_DESCRIPTIONS: Final = tuple(
    """
    description access deprecation_date group meta tags owner label url maturity latest_version fqn source_description
    loader original_file_path
    """.split()
)
_MADE_OF: Final = {"store_failures_as": "store_failures"}
"""Config that dbt derives from another key where the project does not set it."""
_SECTIONS: Final = {"analysis": ("analyses",), "test": ("data_tests", "tests")}
"""Sections of the project file that are not named by their resource type."""
_MERGED: Final = frozenset({"docs", "grants", "meta", "packages", "tags"})
"""Config to which every place adds."""
_DESCRIBING_COLUMNS: Final = ("description", "meta", "tags")
_OF_COLUMNS: Final = ("data_type", "constraints", "quote", "granularity", "more")
_CONFIG: Final = re.compile(r"\{\{-?\s*config\s*\(.*?\)\s*-?\}\}", re.S)
_Place = tuple[str | None, int | None]
_COMMENT: Final = re.compile(r"\s*(?:--.*|\{#.*#\}\s*|/\*.*\*/\s*)?")
_FILES: Final = 50
"""Of how many files git is asked: each takes it a moment."""
_LONGEST: Final = 2_000
_HUNKS: Final = 20


class Cause(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that differs between base and head, and the nodes that are not the same because of it.

    Attributes:
        kind: ``code`` (lines of a node's own file), ``config`` (a key), ``property`` (what a yml file declares besides),
            ``column`` (likewise, of a column), ``argument`` (of a generic test), ``ref`` (what a reference means),
            ``macro``, ``dispatch`` (which package's macro runs), ``var``, ``env_var``, ``hook`` (of a run), ``seed``
            (rows of its file), ``file`` (that a query reads), ``graph`` (a property of another node, which Jinja reads),
            ``catalog`` (a column of a source), ``profile`` (a setting of the target; three stars stand for a value that
            may be a secret), ``new`` and ``removed`` (a node), ``dbt`` (its version), ``compiled`` (what dbt or the warehouse answered while it compiled: nothing that was written differs).
        name: of it: a config key, a macro, a var, ``column.data_type``; of code the node.
        before: as it was on base; None where it was not there.
        after: as it is on head; None where it is not there any more.
        file: where it stands, relative to the project; None where no file of the project has it, or it cannot be told.
        line: the line of it, from 1; None where it cannot be told.
        commit: the one since which the line is so, or that touched the file last, by its short hash; None where git
            knows of none: in a copy without history, and of what is not committed.
        through: of a macro, those by which the first of the nodes calls it, from the node on.
        nodes: the unique_ids of the nodes that are not the same because of it, in the order of the answer.
    """

    kind: str
    name: str
    before: str | None = None
    after: str | None = None
    file: str | None = None
    line: int | None = None
    commit: str | None = None
    through: list[str] = []
    nodes: list[str] = []

    def same_thing(self) -> tuple[Any, ...]:
        """What two causes are one by."""
        return self.kind, self.name, self.before, self.after, self.file, self.line


class Causes:
    """The causes of the changes of one comparison.

    Args:
        comparison: of base and head; a line is told where its files are as dbt has read them.
    """

    def __init__(self, comparison: Comparison) -> None:
        project_dir = comparison.project_dir
        self.comparison = comparison
        self.base: Project = comparison.base
        self.head: Project = comparison.head
        self.project_dir = project_dir
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
        nodes = self.base.nodes  # a relation that is only named is none of them
        removed = (u for u in comparison.removed if u in nodes and nodes[u].name != u)
        return [*ordered, *sorted(starts - {*ordered}), *removed]

    @cached_property
    def at_the_beginning(self) -> list[Cause]:
        """The causes of the relations at which a change began."""
        return self.of_all(self.began())

    def of_all(self, unique_ids: Iterable[str]) -> list[Cause]:
        """The causes of some nodes, each once, with the nodes that are not the same because of it."""
        merged: dict[tuple[Any, ...], Cause] = {}
        for unique_id in dict.fromkeys(unique_ids):
            for cause in self.of(unique_id):
                key = cause.same_thing()
                there = merged.get(key)
                nodes = [*(there.nodes if there is not None else ()), unique_id]
                merged[key] = msgspec.structs.replace(there or cause, nodes=nodes)
        return self._with_commits([*merged.values()])

    def _with_commits(self, causes: list[Cause]) -> list[Cause]:
        """The same, with the commits that made them so, of the first files."""
        if self.project_dir is None:
            return causes
        lines: dict[str, set[int]] = {}
        for cause in causes:
            if cause.file is not None:
                asked = lines.setdefault(cause.file, set())
                asked.update([line] if (line := _line_of(cause)) is not None else [])
        told: dict[str, tuple[str | None, dict[int, str]]] = {}
        for file in [*lines][:_FILES]:
            path = self.project_dir / file
            last = last_commit(path) if path.is_file() else None
            told[file] = (last[0][:8] if last else None), commits_of_lines(path, lines[file])

        def commit_of(cause: Cause) -> str | None:
            of_file, of_lines = told.get(cause.file or "", (None, {}))
            line = _line_of(cause)
            return of_file if line is None else of_lines.get(line)

        return [msgspec.structs.replace(cause, commit=commit_of(cause)) for cause in causes]

    def of(self, unique_id: str) -> list[Cause]:
        """The causes of one node, what was written first; none where all that is compared is the same."""
        if unique_id not in self._found:
            self._found[unique_id] = []  # a hook may write to what it reads
            self._found[unique_id] = self._of(unique_id)
        return self._found[unique_id]

    def _of(self, unique_id: str) -> list[Cause]:
        then, now = self.base.nodes.get(unique_id), self.head.nodes.get(unique_id)
        if now is None and then is None and unique_id in self.comparison.head_analysis.nodes:
            return [Cause(kind="new", name=unique_id)]  # a relation that dbt does not know
        if now is None:
            node = then or Node(name=unique_id)
            return [Cause(kind="removed", name=node.display_name, file=self._file(node))]
        if then is None and (before := self._test_it_was(now)) is not None:
            return [*self._arguments(before, now), *self._config(before, now)]
        if then is None:
            in_yml = now.original_file_path.endswith((".yml", ".yaml"))
            place = self._declared(now) if in_yml else (self._file(now), None)
            return [self._cause("new", now.display_name, (None, None), place)]
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
            *self._functions(now),
            *self._hooks(now),
            *self._files(now),
            *self._graph(now),
            *self._catalog(now),
        ]
        if not causes:
            causes += self._descriptions(then, now)
        if not causes:  # a macro that is given to another one as a value
            causes += self._named_macros(now)
        if not causes:  # it reads what is gone
            broken = verdict_of(self.comparison).broken.get(unique_id)
            for gone in broken.gone if broken is not None else ():
                causes += self.of(gone.unique_id)
        if not causes:  # all that it reads counts: by Python, or in the warehouse while it compiles
            built_by = self.comparison.head_context.names.canonical
            above = [built_by.get(p, p) for p in (unique_id, *self.head.parents.get(unique_id, ()))]
            above = [p for p in above if p != unique_id and p in self.comparison.changed]
            causes += (c for p in above for c in self.of(p) if c.kind != "compiled")
        causes = causes or [*self._compiled(then, now)]
        return list({cause.same_thing(): cause for cause in reversed(causes)}.values())[::-1]

    # -- kinds of causes ----------------------------------------------------------------------------

    def _sides(self) -> Iterator[Cause]:
        """What differs for all nodes."""
        before, now = self.base.metadata, self.head.metadata
        if before.dbt_version != now.dbt_version:
            yield Cause(kind="dbt", name="dbt", before=before.dbt_version, after=now.dbt_version)
        for key, value in self.base.session.items():
            texts = (value, self.head.session[key])
            yield self._cause("profile", key, (setting_as_shown(key, t) or None for t in texts))

    def _code(self, then: Node, now: Node) -> Iterator[Cause]:
        if normalised(then.raw_code) == normalised(now.raw_code) or then.resource_type == "seed":
            return
        if now.resource_type == "test" and now.test_metadata is not None:
            return
        kind = "hook" if now.resource_type == "operation" else "code"
        text, file = now.raw_code, self._file(now)
        # What stands in `config()` is told by its keys.
        settings = [
            range(text.count("\n", 0, call.start()) + 1, text.count("\n", 0, call.end()) + 2)
            for call in (_CONFIG.finditer(text) if then.config != now.config else ())
        ]
        for line, *values in hunks(then.raw_code, text):
            if not any(line in lines for lines in settings):
                at = self.places.line_in_file(file, text, line) if file else None
                yield self._cause(kind, now.display_name, values, (file, at))

    def _config(self, then: Node, now: Node, *, describing: bool = False) -> Iterator[Cause]:
        for key in sorted({*then.config, *now.config}):
            before, after = (n.config.get(key, MISSING) for n in (then, now))
            if _equal(before, after) or (key in DESCRIBING) != describing:
                continue
            if (said := _MADE_OF.get(key)) and now.config.get(said) != then.config.get(said):
                continue
            if self._rendered_otherwise(key, then, now):
                continue
            written = [
                n.unrendered_config.get(key, n.config.get(key, MISSING)) for n in (then, now)
            ]
            if written[0] == written[1] and isinstance(written[1], str) and "{{" in written[1]:
                facts = facts_of(written[1])
                asked = self._sides_macros[1].variables_in(written[1])
                yield from self._values(asked, facts.environment, now.package_name)
                written = [before, after]
            holder = now if after is not MISSING else then
            if all(isinstance(value, dict) for value in (before, after, *written)):
                for inner in sorted({*before, *after}):
                    rendered = [side.get(inner, MISSING) for side in (before, after)]
                    if not _equal(*rendered):
                        sides = zip(written, rendered, strict=True)
                        values = [text.get(inner, value) for text, value in sides]
                        place = self._place_of_config(holder, key, inner)
                        yield self._cause("config", f"{key}.{inner}", values, place)
            else:
                yield self._cause("config", key, written, self._place_of_config(holder, key))

    def _descriptions(self, then: Node, now: Node) -> Iterator[Cause]:
        """What is said to people: a cause only of what Jinja makes of it."""
        config = [*self._config(then, now, describing=True)]
        told = {
            key
            for key in {*then.config, *now.config}
            if then.config.get(key) != now.config.get(key)
        }
        yield from config
        yield from self._properties(then, now, [n for n in _DESCRIPTIONS if n not in told])
        yield from self._columns(then, now, _DESCRIBING_COLUMNS)

    def _rendered_otherwise(self, key: str, then: Node, now: Node) -> bool:
        """Whether ``config()`` gives a setting by the same words: what these ask for is what differs, if anything."""
        if then.raw_code != now.raw_code:
            return False
        if key in ("pre-hook", "post-hook"):
            before, after = (
                [side.text_of_hook(sql, n) for _, sql in hooks_in({key: n.config.get(key)})]
                for side, n in zip(self._config_fingerprints, (then, now), strict=True)
            )
            return before == after
        if key in _MERGED:  # with what yml files say
            return False
        called = _CONFIG.search(now.raw_code)
        return called is not None and re.search(rf"\b{re.escape(key)}\s*=", called[0]) is not None

    def _place_of_config(self, node: Node, key: str, inner: str = "") -> _Place:
        """Where a setting of a node is written, or a part of it: in its own file, in a yml file, or in the project file."""
        file = self._file(node)
        called = _CONFIG.search(node.raw_code) if node.test_metadata is None else None
        word = re.compile(rf"\b{re.escape(key.replace('-', '_'))}\b\s*=")
        if file and called is not None and (at := word.search(called[0])) is not None:
            line = node.raw_code.count("\n", 0, called.start() + at.start()) + 1
            return file, self.places.line_in_file(file, node.raw_code, line)
        declared = self.places.declared(node, key=key)
        if declared is None:  # the project file says it of its packages, too
            for section in _SECTIONS.get(node.resource_type, (f"{node.resource_type}s",)):
                declared = declared or self.places.in_project_file(
                    section, *node.fqn, key, part=inner
                )
        return declared or self._declared(node)

    def _seed(self, then: Node, now: Node) -> Iterator[Cause]:
        seeds, file = self.comparison.seeds, self._file(now)
        large = now.unique_id in seeds.head.digests
        if now.resource_type != "seed" or (then.checksum == now.checksum and not large):
            return
        texts = [
            (side.content(node) or b"").decode("utf-8", "replace")
            for side, node in ((seeds.base, then), (seeds.head, now))
        ]
        if not all(texts):  # a file is not at hand, or too large to have a checksum
            yield self._cause("seed", now.name, (None, None), (file, None))
            return
        for line, *values in hunks(*texts, comments=False):
            yield self._cause("seed", now.name, values, (file, line))

    def _properties(self, then: Node, now: Node, names: Iterable[str]) -> Iterator[Cause]:
        for name in names:
            before, after = getattr(then, name), getattr(now, name)
            if name in ("database", "schema") and (
                now.resource_type != "source" or where_it_is(then) == where_it_is(now)
            ):
                continue  # what the target and the config say of it
            if name == "contract":
                before, after = before.enforced, after.enforced
                if then.config.get("contract") != now.config.get("contract"):
                    continue
            if not _equal(before, after):
                key = name.removeprefix("unrendered_")
                place = self._declared(now, key=key)
                yield self._cause("property", key, (before, after), place)

    def _columns(
        self, then: Node, now: Node, fields: Iterable[str] = _OF_COLUMNS
    ) -> Iterator[Cause]:
        for name in dict.fromkeys((*then.columns, *now.columns)):
            before, after = then.columns.get(name), now.columns.get(name)
            declared = now.contract_enforced or then.contract_enforced
            for field in fields:
                values = [getattr(c, field) if c is not None else None for c in (before, after)]
                if _equal(*values) or (field == "data_type" and not declared):
                    continue
                yield self._cause("column", f"{name}.{field}", values, self._declared(now, name))

    def _arguments(self, then: Node, now: Node) -> Iterator[Cause]:
        sides = [n.test_metadata.kwargs if n.test_metadata else {} for n in (then, now)]
        for key in dict.fromkeys((*sides[0], *sides[1])):
            values = [side.get(key, MISSING) for side in sides]
            if values[0] != values[1]:
                yield self._cause("argument", key, values, self._declared(now))

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
        sides = zip(self._resolved, (then, now), strict=True)
        meant = zip(now.refs, then.refs, *(r.of(n) for r, n in sides), strict=False)
        for ref, was, before, after in meant:
            if before == after or ref != was:
                continue
            target = self.head.nodes.get(after)
            place = self.places.declared(target, key="latest_version") if target else None
            names = _name(self.base, before), _name(self.head, after)
            yield self._cause("ref", f"ref('{ref.name}')", names, place or (self._file(now), None))

    def _functions(self, now: Node) -> Iterator[Cause]:
        """What differs of the functions that it calls, by a reference or by a name written by hand."""
        called = {name.lower() for name in _CALL.findall(now.compiled_code or "")}
        for function in self.head.of_type("function"):
            named = (function.alias or function.name).lower() in called
            if named or function.unique_id in self.head.parents.get(now.unique_id, ()):
                yield from (c for c in self.of(function.unique_id) if c.kind != "compiled")

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

    @cached_property
    def _resolved(self) -> tuple[References, References]:
        return References(self.base), References(self.head)

    def _macros(self, then: Node, now: Node) -> Iterator[Cause]:
        reached = self._reached(then, 0) | self._reached(now, 1)
        for unique_id in sorted(reached & self._differing_macros):
            yield self._of_macro(unique_id, now)
        orders = self.base.macro_order, self.head.macro_order
        if orders[0] != orders[1] and not self._sides_macros[1].in_order.isdisjoint(reached):
            place = self.places.in_project_file("dispatch") or (PROJECT_FILE, None)
            yield self._cause("dispatch", "dispatch", map(_of_dispatch, orders), place)

    def _named_macros(self, now: Node) -> Iterator[Cause]:
        """The macros whose names stand in its text or in that of a macro it runs, where none of them is called."""
        macros = self._sides_macros[1]
        texts = [now.raw_code, *self._texts(self._reached(now, 1))]
        named = {u for text in texts for u in macros.named_in(text)}
        for unique_id in sorted(macros.closure(named) & self._differing_macros):
            yield self._of_macro(unique_id, now)

    @cached_property
    def _differing_macros(self) -> frozenset[str]:
        """The macros of the project and its packages that are not the same on both sides."""
        base, head = self._sides_macros
        return frozenset(
            u
            for u in base.user | head.user
            if u not in base.macros or u not in head.macros or base.text(u) != head.text(u)
        )

    def _of_macro(self, unique_id: str, node: Node) -> Cause:
        sides = [macros.macros.get(unique_id) for macros in self._sides_macros]
        texts = [macro.macro_sql if macro is not None else None for macro in sides]
        (macro,) = [macro for macro in reversed(sides) if macro is not None][:1]
        own = macro.package_name == self.head.name
        name = macro.name if own else f"{macro.package_name}.{macro.name}"
        file = self._in_package(macro.package_name, macro.original_file_path)
        line, *values = 1, *texts
        if texts[0] is not None and texts[1] is not None:
            line, *values = next(hunks(texts[0], texts[1]), (1, None, None))
        at = self.places.line_in_file(file, texts[1], line) if file and texts[1] else None
        cause = self._cause("macro", name, values, (file, at))
        way = self._way(frozenset(node.depends_on.macros), unique_id)
        return msgspec.structs.replace(cause, through=list(way))

    def _reached(self, node: Node, side: int) -> frozenset[str]:
        """The macros that a node may run on a side: in its text, its hooks and its materialization."""
        macros = self._sides_macros[side]
        start = {*node.depends_on.macros}
        for _, sql in hooks_of(node):
            start.update(macros.named_in(sql))
        if node.resource_type == "operation" or node.config.get("sql_header"):
            start.update(macros.named_in(f"{node.raw_code}\n{node.config.get('sql_header') or ''}"))
        start.update(macros.naming(node.package_name))
        return self._run(frozenset(start), kind_of(node), node.package_name, side)

    @cached_method
    def _run(self, start: frozenset[str], kind: str, package: str, side: int) -> frozenset[str]:
        macros = self._sides_macros[side]
        return macros.closure(start) | macros.run_by(kind, package)

    @cached_property
    def _config_fingerprints(self) -> tuple[ConfigFingerprints, ConfigFingerprints]:
        comparison = self.comparison
        return (
            comparison.base_context.config_fingerprints,
            comparison.head_context.config_fingerprints,
        )

    @cached_property
    def _sides_macros(self) -> tuple[Macros, Macros]:
        return self.comparison.base_context.macros, self.comparison.head_context.macros

    @cached_method
    def _way(self, called: frozenset[str], macro: str) -> tuple[str, ...]:
        """The macros by which one is reached from those that a node calls, by their names."""
        macros = self.head.macros
        tree = breadth_first_tree(sorted(called), self._calls)
        way: list[str] = []
        above = tree.get(macro)
        while above is not None:
            way.insert(0, macros[above].name)
            above = tree[above]
        return tuple(way)

    @cached_property
    def _calls(self) -> dict[str, list[str]]:
        return {u: macro.depends_on.macros for u, macro in self.head.macros.items()}

    def _named_values(self, now: Node) -> Iterator[Cause]:
        texts = [now.raw_code, *(sql for _, sql in hooks_of(now))]
        variables, environment = self._asked_by_macros(self._reached(now, 1))
        yield from self._values(
            variables.union(*map(self._sides_macros[1].variables_in, texts)),
            environment.union(*(facts_of(text).environment for text in texts)),
            now.package_name,
        )

    @cached_method
    def _asked_by_macros(self, macros: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        """The vars and the environment variables that the user's macros among these ask for."""
        texts = self._texts(macros)
        nothing = frozenset[str]()
        return (
            nothing.union(*map(self._sides_macros[1].variables_in, texts)),
            nothing.union(*(facts_of(text).environment for text in texts)),
        )

    @cached_method
    def _texts(self, macros: frozenset[str]) -> list[str]:
        head = self._sides_macros[1]
        return [head.macros[u].macro_sql for u in sorted(macros & head.user)]

    def _values(
        self, variables: Collection[str], environment: Iterable[str], package: str
    ) -> Iterator[Cause]:
        """The vars and environment variables of these names that differ for a node of a package."""
        sides = self._variables
        for name in _asked(sides, variables):
            if name in self._packages and name not in variables:
                continue  # the vars that the project file gives a package, each of which is told
            place = self.places.in_project_file("vars", package, name)
            values = (_value(side.get(name), package) for side in sides)
            yield self._cause("var", name, values, place)
        sides = self.base.environment, self.head.environment
        for name in _asked(sides, environment):
            yield self._cause("env_var", name, (side.get(name) for side in sides))

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(macro.package_name for macro in self.head.macros.values())

    @cached_property
    def _variables(self) -> tuple[dict[str, str], dict[str, str]]:
        """The vars of both sides that differ, as far as they are known or dbt's files tell."""
        if self.base.variables is not None and self.head.variables is not None:
            return self.base.variables, self.head.variables
        before, now = Variables(self.base, self.head).differing() or ({}, {})
        names = {n for n in (*before, *now) if before.get(n) != now.get(n)}
        return {n: before.get(n, "") for n in names}, {n: now.get(n, "") for n in names}

    def _hooks(self, now: Node) -> Iterator[Cause]:
        """What hooks of other nodes do otherwise that may write to it, or make what its query names."""
        then, hooks = self.comparison.base_context.hooks_that_write, self.comparison.hooks
        named = {ANY_NAME, *_WORD.findall((now.compiled_code or now.raw_code).lower())}
        before, after = ({hook.owner: hook.text for hook in side} for side in (then, hooks))
        for hook in (*hooks, *(h for h in then if h.owner not in after)):
            writes = now.unique_id in hook.writes or hook.anything
            writes = writes or not named.isdisjoint(hook.makes | hook.writes)
            differs = before.get(hook.owner) != after.get(hook.owner)
            if writes and hook.owner != now.unique_id and differs:
                yield from (c for c in self.of(hook.owner) if c.kind != "compiled")

    def _files(self, now: Node) -> Iterator[Cause]:
        """The files that it reads, and that are not the same."""
        for file in sorted({*self.base.files, *self.head.files}):
            if self.base.files.get(file) != self.head.files.get(file) and file in (
                now.compiled_code or now.raw_code
            ):
                yield Cause(kind="file", name=file, file=file)

    def _graph(self, now: Node) -> Iterator[Cause]:
        """What it reads of other nodes by ``graph``, and differs."""
        texts = [now.raw_code, *self._texts(self._reached(now, 1))]
        for reads, types in map(asked_of_graph, (t for t in texts if asks(t, asks_the_graph))):
            for then, other in self._differing:
                if types is not None and other.resource_type not in types:
                    continue
                names = [
                    name
                    for name in sorted(reads.names)
                    if of_name(then, name) != of_name(other, name)
                ]
                told: dict[str, str] = {}
                for cause in (
                    *self._config(then, other, describing=True),
                    *self._config(then, other),
                    *self._properties(then, other, _DESCRIPTIONS),
                ):
                    key = cause.name.partition(".")[0]
                    if key in names and told.setdefault(key, cause.kind) == cause.kind:
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
            values = [side.get(name, MISSING) for side in sides]
            if values[0] != values[1]:
                yield self._cause("catalog", name, values)

    def _compiled(self, then: Node, now: Node) -> Iterator[Cause]:
        """Where nothing that was written differs: what the SQL was compiled to."""
        texts = [n.compiled_code or "" for n in (then, now)]
        for _, *values in list(hunks(*texts))[:1]:
            yield self._cause("compiled", now.display_name, values)

    # -- places and names ---------------------------------------------------------------------------

    def _cause(
        self, kind: str, name: str, values: Iterable[Any], place: _Place | None = None
    ) -> Cause:
        """A cause with what stands there on base and on head."""
        before, after = map(_shown, values)
        file, line = place or (None, None)
        return Cause(kind=kind, name=name, before=before, after=after, file=file, line=line)

    def _declared(self, node: Node, column: str | None = None, key: str = "") -> _Place:
        """Where a yml file says something of a node, or else where the node is."""
        places = self.places.declared(node, column, key) or self.places.declared(node)
        return places or (self._file(node), None)

    def _file(self, node: Node) -> str | None:
        return self._in_package(node.package_name, node.original_file_path)

    def _in_package(self, package: str, path: str) -> str | None:
        """A file of a package as it is called in the project."""
        if not path or package in INTERNAL:
            return None
        path = path.removeprefix("./")
        return path if package == self.head.name else f"{self._folder_of(package)}/{path}"

    @cached_method
    def _folder_of(self, package: str) -> str:
        """Where a package is; of one that is a folder of the repository, that folder: it may be around the project."""
        root = self.places.project_dir.resolve()
        source = (root / "dbt_packages" / package).resolve()
        top = next((p for p in (root, *root.parents) if (p / ".git").exists()), root)
        if source.is_relative_to(root / "dbt_packages") or not source.is_relative_to(top):
            return f"dbt_packages/{package}"
        return Path(os.path.relpath(source, root)).as_posix()


causes_of = made_once(Causes)
"""What was edited between the sides of a comparison, found once."""


def _of_dispatch(order: str | None) -> Any:
    """What a project file says of ``dispatch``, of what `Project.macro_order` keeps."""
    try:
        return ast.literal_eval(order or "")[0]
    except (ValueError, SyntaxError, TypeError, IndexError):
        return order


def _line_of(cause: Cause) -> int | None:
    """The line that a commit is asked for; None for that of the file, where nothing stands there any more."""
    return cause.line if cause.after is not None else None


def _name(side: Project, unique_id: str) -> str:
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


def _value(text: str | None, package: str) -> str | None:
    """A var's value for a package, of what `changes.dbt_vars.vars_by_name` keeps of it."""
    if not text:
        return None
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text[:_LONGEST]
    if not isinstance(values, list):
        return _shown(values)
    # What the project says for the package comes before what it says for all, and that before the package's own.
    of_package = [v[-1] for v in values if isinstance(v, tuple) and v[-2] == package]
    of_all = [v for v in values if not isinstance(v, tuple)]
    nested = [v[-1] for v in values if isinstance(v, tuple) and len(v) > 2 and v[1] == package]
    found = (*nested, *of_all, *of_package)
    return _shown(found[0] if found else values)
