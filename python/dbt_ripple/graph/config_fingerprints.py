"""Which part of a node's config changes data (rule 7).

A view, a table and an inlined model have the same data, and so has everything that only matters to
readers, owners or storage. What an incremental model, a snapshot or a hook does with rows is not
in compiled SQL, but in the config and text that this module reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

from dbt_ripple.artifacts import Node, Project, References
from dbt_ripple.artifacts.project import WITH_SQL
from dbt_ripple.flow.builtin_names import VOLATILE_NAMES
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import FILTER, JOIN
from dbt_ripple.flow.statement_effects import UNKNOWN
from dbt_ripple.graph.file_reads import files_read, modules_imported
from dbt_ripple.graph.hook_reader import HookEffects, hook_reader
from dbt_ripple.graph.macros import OWN, Macros, dispatched, environment_in_python
from dbt_ripple.graph.node_properties import (
    KEEPING_ROWS,
    constraints,
    counted,
    declared,
    kind_of,
    place,
    property_names,
    read_of,
    run_with,
    written_by_declaration,
)
from dbt_ripple.jinja.facts import Facts, calls_any_macro, facts_of, looks_at_it, names_this
from dbt_ripple.jinja.facts import asks as asks_of
from dbt_ripple.jinja.reads import (
    NOTHING,
    Reads,
    asks_the_graph,
    every_word_of,
    reads_of,
    reads_of_python,
    types_in_graph,
)
from dbt_ripple.jinja.text import (
    branches,
    normalised,
    normalised_macro,
    outside_of_branches,
    without_tags,
)

OF_COLUMNS: Final = ("unique_key", "updated_at", "check_cols")
"""Config that names columns of the node: what counts is what these are, not how they are called."""

_WITHOUT_KEY: Final = frozenset({"append", "insert_overwrite", "microbatch"})
"""Incremental strategies that do not look at unique_key."""


_APPLIES_TAGS: Final = re.compile(r"\s*\{\{-?\s*dbt_ripple\.apply_tags\(\s*\)\s*-?\}\}\s*")
"""See `graph.macros.APPLY_TAGS`."""

_RUN: Final = frozenset({"model", "seed", "snapshot", "test"})
NAMING: Final = re.compile(r"generate_\w+_name$")
"""Names of the macros by which dbt names relations."""

_WORDS: Final = re.compile(r"\w+|\*")
BY_JINJA: Final = "__by_jinja__"
"""Stands for what Jinja gives, where names are looked for in a text."""

_PART: Final = r"""(?:`[^`]+`|"[^"]+"|(?<!\w)\w++)"""
_DOTTED: Final = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})+")
_READ: Final = re.compile(
    r"""\b(?:from|join|into|update|using|table|view)\s+[`"]?(\w+)\b[`"]?(?!\s*\.)""", re.I
)


class ConfigFingerprints:
    """The settings of one project's nodes that change data."""

    def __init__(self, project: Project, macros: Macros) -> None:
        self.project = project
        self.macros = macros
        self._of_all_nodes: dict[tuple[Reads, frozenset[str] | None], bytes] = {}
        self._of_types: dict[
            frozenset[str] | None, tuple[list[tuple[str, Node]], frozenset[str]]
        ] = {}
        self._read_everywhere: dict[tuple[str, ...], tuple[Reads, frozenset[str] | None]] = {}
        self.hook_reader = hook_reader(macros)
        self._asking: dict[tuple[str, ...], tuple[bool, bool]] = {}
        self._may_be_other_sql: dict[str, bool] = {}
        self._asked: dict[tuple[str, ...], tuple[set[str], set[str]]] = {}
        self.adapter_type = project.metadata.adapter_type

    def of(self, node: Node, *, columns: bool = False) -> bytes:
        """A fingerprint of what of the properties changes data; empty where nothing does.

        Args:
            node: a model, snapshot, seed or test.
            columns: whether settings that name columns are part of it; otherwise they are up to
                the caller, who knows what the columns are.
        """
        settings = self.settings_of(node, columns=columns)
        return digest(b"config", repr(sorted(settings.items())).encode()) if settings else b""

    def settings_of(self, node: Node, *, columns: bool = False) -> dict[str, Any]:
        """What of the properties of a node changes its data, by name (see `graph.node_properties`)."""
        config = node.config
        settings: dict[str, Any] = {}
        if self.may_be_other_sql(node):
            settings["commands"] = normalised(node.raw_code)
            settings["command vars"] = self.macros.variables(node.raw_code)
            settings["command macros"] = self.macros.fingerprint(node.depends_on.macros)
            settings["command references"] = self.references.of(node)
        if node.is_ephemeral and node.compiled_code is not None:
            return settings  # it is what its readers' SQL shows: no hook of it runs
        if hooks := self.own_hooks(node):
            settings["hooks"] = [(when, normalised(sql)) for when, sql in hooks]
            settings["hook macros"] = self.hook_code(node)
            settings["hook vars"] = self.macros.variables(" ".join(sql for _, sql in hooks))
            if VOLATILE_NAMES & self.words_of_hooks(node):  # in each relation other values
                settings["hook of"] = node.unique_id
            if self.hooks_read(node):
                settings["hook references"] = self.references.of(node)
        if config.get("sql_header"):
            settings["sql_header"] = normalised(str(config["sql_header"]))
        materialized = kind_of(node)
        project_macros = self.macros.of_materialization(materialized)
        if project_macros:
            settings["materialization"] = project_macros
        if materialized in KEEPING_ROWS:
            settings["kind"] = materialized, place(node), self.naming  # in a new place it is new
        if node.resource_type != "test":
            settings.update(counted(node, self.adapter_type))
            if writing := written_by_declaration(node):
                settings["of columns"] = writing
        if columns or materialized not in KEEPING_ROWS:
            for name in OF_COLUMNS if materialized in KEEPING_ROWS else ():
                if config.get(name):
                    settings[name] = config[name]
        if materialized == "incremental":
            if hidden := "\n".join(branches(node.raw_code)):
                settings["branches"] = hidden
                settings["branch vars"] = self.macros.variables(hidden)
                settings["branch macros"] = self.macros.fingerprint(self.macros.named_in(hidden))
            elif asking := self.macros.that_ask(node.depends_on.macros):
                settings["branches"] = normalised(node.raw_code)
                settings["branch vars"] = self.macros.variables(node.raw_code)
                settings["branch macros"] = self.macros.fingerprint(asking)
            if "branches" in settings:
                settings["branch references"] = self.references.of(node)
        if self.project.files:
            read = [*files_read(node, self.adapter_type), *modules_imported(node)]
            if held := {f: content for f in read if (content := self.project.files.get(f))}:
                settings["files"] = held
        unseen = self.unseen(node, hooks)
        if unseen or project_macros or node.is_python:
            if reads := self.reads(node, unseen):
                settings["read"] = read_of(node, reads)
            everywhere, kinds = self.reads_everywhere(node, hooks, unseen)
            if everywhere:
                settings["read of all nodes"] = self.of_all_nodes(everywhere, kinds)
        return settings

    def of_function(self, node: Node) -> list[tuple[str, Any]]:
        """What of the config of a function decides what it gives back."""
        return list(counted(node, self.adapter_type))

    # -- what something reads ---------------------------------------------------------------------

    def reads(self, node: Node, unseen: list[str]) -> Reads:
        """What of a node's properties is read where no compiled SQL shows it: in `unseen`, say."""
        reads = NOTHING
        if run := self.macros.run_by(kind_of(node)):
            reads |= self.macros.reads(run)
        for text in unseen:
            reads |= reads_of(text, self.macros.internal)
            reads |= self.macros.reads(self.macros.named_in(text))
        if node.is_python:
            reads |= reads_of_python(node.raw_code)
        elif node.compiled_code is None and node.resource_type in WITH_SQL:
            reads |= self.macros.reads(node.depends_on.macros)
        return reads

    def unseen(self, node: Node, hooks: list[tuple[str, str]]) -> list[str]:
        """The pieces of Jinja that run for a node and that its compiled SQL does not show."""
        texts = [sql for _, sql in hooks]
        if node.is_python or node.resource_type not in WITH_SQL:
            return texts
        if node.compiled_code is None or self.may_be_other_sql(node):
            return [*texts, node.raw_code]
        if node.materialized == "incremental":
            hidden = "\n".join(branches(node.raw_code))
            if not hidden and self.macros.that_ask(node.depends_on.macros):
                hidden = node.raw_code
            texts.append(hidden)
        return [text for text in texts if text]

    def may_be_other_sql(self, node: Node) -> bool:
        """Whether a node may be built from other SQL than its compiled SQL.

        It may where it asks which command runs, or queries the warehouse and what it finds there
        decides: its own relation is there or is not.
        """
        answer = self._may_be_other_sql.get(node.unique_id)
        if answer is None:
            asks = looks = False
            if (
                node.compiled_code is not None
                and node.resource_type in WITH_SQL
                and not node.is_python
            ):
                asks, looks = self._asking_and_looking(node)
            answer = asks or (looks and self._looks_at_itself(node))
            self._may_be_other_sql[node.unique_id] = answer
        return answer

    def _asking_and_looking(self, node: Node) -> tuple[bool, bool]:
        """Whether a node asks which command runs, and whether it may query the warehouse."""
        incremental = node.materialized == "incremental"
        # The same for all tests of one kind.
        code = (node.raw_code, "incremental" if incremental else "", *node.depends_on.macros)
        answers = self._asking.get(code)
        if answers is None:
            asked = [Facts.asks_which_command]
            if not incremental:  # of those, `branches` are told apart
                asked.append(Facts.asks_for_full_refresh)
            asks = any(
                asks_of(node.raw_code, what) or self.macros.that_ask(node.depends_on.macros, what)
                for what in asked
            )
            looks = asks_of(node.raw_code, looks_at_it) or self.macros.any_that(
                node.depends_on.macros, looks_at_it
            )
            answers = self._asking[code] = asks, looks
        return answers

    def _looks_at_itself(self, node: Node) -> bool:
        """Whether a node may be built from other SQL where its own relation is there, or is not.

        What queries the warehouse and names the relation that it builds may write other SQL where
        that is not there yet, or is another. In a data test ``model`` is what is tested.
        """
        raw = node.raw_code
        own = facts_of(outside_of_branches(raw) if node.materialized == "incremental" else raw)
        called = node.depends_on.macros
        if not (looks_at_it(own) or self.macros.any_that(called, looks_at_it)):
            return False
        if names_this(own) or self.macros.any_that(called, names_this):
            return True
        if node.resource_type == "test":
            return False
        texts = map(facts_of, self.macros.texts_of(called))
        name = node.alias or node.name
        return any("model" in facts.words or _says(facts, name) for facts in (own, *texts))

    def reads_everywhere(
        self, node: Node, hooks: list[tuple[str, str]], unseen: list[str]
    ) -> tuple[Reads, frozenset[str] | None]:
        """What of *all* nodes is read for one of them: by ``graph``, in a hook or its like."""
        run = self.macros.run_by(kind_of(node))
        of_hooks = {sql for _, sql in hooks}
        pieces = [*self.macros.texts_of(run)]
        for text in unseen:
            if text in of_hooks:
                pieces += self.hook_reader.of(text, node.package_name).texts
            else:
                pieces += [text, *self.macros.texts_of(self.macros.named_in(text))]
        return self._read_everywhere_in(pieces)

    def _read_everywhere_in(self, pieces: Iterable[str]) -> tuple[Reads, frozenset[str] | None]:
        """What these texts, which run together, read of all nodes.

        Returns:
            What is read; and of which types of nodes, None where that may be any.
        """
        together = tuple(pieces)
        read = self._read_everywhere.get(together)
        if read is None:
            asking = [piece for piece in together if asks_the_graph(piece)]
            reads = NOTHING
            for piece in asking:
                reads |= reads_of(piece, self.macros.internal)
            if asking:  # what it finds there, it may pass on
                for piece in together:
                    reads |= every_word_of(piece)
            read = self._read_everywhere[together] = reads, types_in_graph(asking)
        return read

    def read_by(self, text: str, node: Node, done: HookEffects) -> bytes:
        """A fingerprint of the properties that a hook of a node reads; empty for none."""
        parts = []
        reads = reads_of(text, self.macros.internal)
        reads |= self.macros.reads(self.macros.named_in(text))
        if reads:
            parts.append(repr(read_of(node, reads)).encode())
        everywhere, kinds = self._read_everywhere_in(done.texts)
        if everywhere:
            parts.append(self.of_all_nodes(everywhere, kinds))
        return digest(*parts) if parts else b""

    def of_all_nodes(self, reads: Reads, types: frozenset[str] | None) -> bytes:
        """A fingerprint of what is read of all nodes of these types."""
        nodes_and_names = self._of_types.get(types)
        if nodes_and_names is None:
            of_project = self.project.nodes
            nodes = [
                (u, of_project[u])
                for u in sorted(of_project)
                if types is None or of_project[u].resource_type in types
            ]
            names = property_names(node for _, node in nodes)
            nodes_and_names = self._of_types[types] = nodes, names
        nodes, names = nodes_and_names
        # Macros that walk over ``graph`` are taken to read every word of theirs and of the hook that
        # calls them. Most words are no property of any node, and hooks that differ by them read the same.
        reads = reads.limited_to(names)
        if reads.everything:
            return self._of_each(reads, types, nodes)
        # Each property by itself, as most of what reads one reads others that are asked for, too.
        single = [Reads(names=frozenset({name})) for name in sorted(reads.names)]
        single += [Reads(parts=frozenset({part})) for part in sorted(reads.parts)]
        return digest(*(self._of_each(each, types, nodes) for each in single))

    def _of_each(
        self, reads: Reads, types: frozenset[str] | None, nodes: list[tuple[str, Node]]
    ) -> bytes:
        """A fingerprint of what is read of each of these nodes."""
        fingerprint = self._of_all_nodes.get((reads, types))
        if fingerprint is None:
            fingerprint = digest(*(repr((u, read_of(node, reads))).encode() for u, node in nodes))
            self._of_all_nodes[reads, types] = fingerprint
        return fingerprint

    @cached_property
    def references(self) -> References:
        """What each reference of a node means."""
        return References(self.project)

    # -- what a build reads -------------------------------------------------------------------------

    def built_with(self, node: Node) -> bytes:
        """A fingerprint of all properties by which a node may build or fail, whatever its data.

        A constraint, an index, a grant or a place may make a build fail, and say nothing of rows.
        """
        if node.is_ephemeral:
            return digest(b"ephemeral")
        settings: list[Any] = [
            sorted(self.settings_of(node, columns=True).items()),
            sorted(run_with(node), key=lambda pair: pair[0]),
            (node.language, place(node), constraints(node), declared(node)),
            self.naming,
        ]
        if others := [hook for hook in hooks_of(node) if hook not in self.own_hooks(node)]:
            codes = [
                self.code_of_hook(sql, self.hook_reader.of(sql, node.package_name))
                for _, sql in others
            ]
            settings.append([[(when, normalised(sql)) for when, sql in others], codes])
        config = node.config
        if config.get("labels_from_meta") or len(hooks_in(config)) != len(hooks_of(node)):
            settings.append(
                (node.meta, node.tags, [(c.name, c.meta) for c in node.columns.values()])
            )
        return digest(b"built with", repr(settings).encode())

    @cached_property
    def naming(self) -> bytes:
        """A fingerprint of the user's macros that name relations."""
        return self.macros.fingerprint(
            u for u in self.macros.user if NAMING.match(dispatched(self.project.macros[u].name))
        )

    # -- hooks and branches -----------------------------------------------------------------------

    def own_hooks(self, node: Node) -> list[tuple[str, str]]:
        """The node's hooks that may change its own relation, as `hooks_of` gives them."""
        return [
            (when, sql)
            for when, sql in hooks_of(node)
            if self.hook_reader.of(sql, node.package_name).may_change(node)
        ]

    def run_by_hook(self, sql: str, node: Node) -> set[str]:
        """The macros that a hook of a node may run, by unique_id."""
        done = self.hook_reader.of(sql, node.package_name)
        if done.because is None:
            return {*done.called}
        return {*self.macros.closure(self.macros.named_in(sql))}

    def hook_code(self, node: Node) -> bytes:
        """A fingerprint of the user's macros that these hooks run; empty for none."""
        codes = [
            self.code_of_hook(sql, self.hook_reader.of(sql, node.package_name))
            for _, sql in self.own_hooks(node)
        ]
        return digest(*codes) if any(codes) else b""

    def code_of_hook(self, sql: str, done: HookEffects) -> bytes:
        """A fingerprint of the user's macros that a hook runs, as far as they may run; empty for none."""
        if done.packages:
            return digest(*map(str.encode, sorted(done.called)))
        if done.because or any(map(calls_any_macro, done.texts)):
            return self.macros.fingerprint(self.macros.named_in(sql))
        pieces = {normalised_macro(piece) for piece in done.texts[1:]}
        parts = [f"{piece}{self.macros.variables(piece)}".encode() for piece in sorted(pieces)]
        if self.project.macro_order is not None and not self.macros.in_order.isdisjoint(
            done.called
        ):
            parts.append(self.project.macro_order.encode())
        return digest(b"macros taken", *parts) if parts else b""

    def hooks_read(self, node: Node) -> bool:
        """Whether a hook of the node refers to other relations than the node itself."""
        texts = [
            text
            for _, sql in self.own_hooks(node)
            for text in self.hook_reader.of(sql, node.package_name).texts
        ]
        return any({"ref", "source", "graph"} & facts_of(text).words for text in texts)

    def unseen_variables(self, node: Node) -> tuple[set[str], set[str]]:
        """The vars and the environment variables used where compiled SQL does not show them.

        That is in hooks, those of a run, too, in branches that were not compiled, in the user's macros
        that these or a materialization run, and in Python.
        """
        asked: tuple[set[str], set[str]] = (set(), set())
        if node.resource_type == "operation" and node.package_name != OWN:
            for text in self.hook_reader.of(node.raw_code, node.package_name).texts:
                asked[0].update(facts_of(text).variables)
                asked[1].update(facts_of(text).environment)
            return asked
        if node.resource_type not in _RUN or node.is_ephemeral:
            return asked
        hooks = hooks_of(node)
        run = self.macros.run_by(kind_of(node))
        grows = node.materialized == "incremental"
        if not (hooks or run or grows or node.is_python):
            return asked
        texts = self.unseen(node, []) if node.compiled_code else []
        start = [u for text in texts for u in self.macros.named_in(text)]
        if grows:
            start += self.macros.that_ask(node.depends_on.macros)
        called = self._asked_for(self.macros.texts_of([*start, *run]))
        asked[0].update(called[0])
        asked[1].update(called[1])
        for _, sql in hooks:
            texts += self.hook_reader.of(sql, node.package_name).texts
        for text in texts:
            asked[0].update(facts_of(text).variables)
            asked[1].update(facts_of(text).environment)
        if node.is_python:
            asked[1].update(environment_in_python(node.raw_code))
        return asked

    def _asked_for(self, texts: tuple[str, ...]) -> tuple[set[str], set[str]]:
        """The vars and the environment variables that texts of macros use."""
        asked = self._asked.get(texts)
        if asked is None:
            facts = [facts_of(text) for text in texts]
            asked = self._asked[texts] = (
                {name for each in facts for name in each.variables},
                {name for each in facts for name in each.environment},
            )
        return asked

    def named_by_hooks(self, node: Node) -> tuple[set[str], set[str]]:
        """The relations that these hooks name, with a schema and by a bare name.

        A part that Jinja gives (``{{ target.schema }}.orders``) makes a name a bare one.
        """
        dotted: set[str] = set()
        bare: set[str] = set()
        for _, sql in self.own_hooks(node):
            done = self.hook_reader.of(sql, node.package_name)
            if done.because is None:
                named = [t for t in done.reads | done.writes if t.place is None]
                dotted |= {t.name for t in named if "." in t.name and UNKNOWN not in t.name}
                bare |= {t.last for t in named if "." not in t.name or UNKNOWN in t.name}
                continue
            for text in done.texts:
                names = names_in_sql(without_tags(text, BY_JINJA))
                dotted |= names[0]
                bare |= names[1]
        return dotted, bare

    def words_of_hooks(self, node: Node) -> set[str]:
        """The words of these hooks and of what they call, lower case, ``*`` among them.

        A hook that deletes or updates goes by columns; which ones, these words tell.
        """
        texts = [
            text
            for _, sql in self.own_hooks(node)
            for text in self.hook_reader.of(sql, node.package_name).texts
        ]
        return words(" ".join(texts)) if texts else set()

    def kept_by_name(self, node: Node) -> bool:
        """Whether values of a relation may be there under a name that its query did not write.

        Rows of earlier runs have theirs under the names of then. A hook whose Jinja only names
        relations says itself which columns it is about (`words_of_hooks`); any other Jinja may ask for
        names of columns, or make them.
        """
        return kind_of(node) in KEEPING_ROWS or any(
            _may_make_words(facts_of(sql))
            or not self.macros.user.isdisjoint(self.macros.closure(self.macros.named_in(sql)))
            for _, sql in self.own_hooks(node)
        )

    def words_of_branches(self, node: Node) -> set[str]:
        """The words of an incremental model's branches of which one was not compiled."""
        if node.materialized != "incremental":
            return set()
        hidden = "\n".join(branches(node.raw_code))
        called = self.macros.closure(self.macros.named_in(hidden)) & self.macros.user
        return words(" ".join([hidden, *map(self.macros.text, called)]))

    def column_uses(self, node: Node) -> Iterator[tuple[str, int, str]]:
        """The columns that settings name: the setting, the kind of use, the column's name."""
        config = node.config
        if kind_of(node) not in KEEPING_ROWS:
            return
        strategy = config.get("incremental_strategy")
        if strategy is None and self.adapter_type == "spark":
            strategy = "append"  # dbt-spark's default, which ignores unique_key
        if node.resource_type == "snapshot" or strategy not in _WITHOUT_KEY:
            for name in listed(config.get("unique_key")):
                yield "unique_key", JOIN, str(name)
        if node.resource_type == "snapshot":
            updated_at = config.get("updated_at")
            if isinstance(updated_at, str):
                yield "updated_at", FILTER, updated_at
            check = config.get("check_cols")
            if isinstance(check, list):
                for name in check:
                    yield "check_cols", FILTER, str(name)


def _says(facts: Facts, name: str) -> bool:
    """Whether a name stands in a text, but where it tells dbt what to call the node."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return name in facts.words or any(
        of != "config" and word.search(text) for text, of in facts.texts
    )


_NAMES_OF_RELATIONS: Final = frozenset({"this", "target", "ref", "source"})


def _may_make_words(facts: Facts) -> bool:
    """Whether Jinja does anything in a hook but name relations."""
    steps = {step for use in facts.uses for step in use.path}
    return (
        not facts.readable
        or not _NAMES_OF_RELATIONS.issuperset(use.name for use in facts.uses)
        or not steps.issuperset(facts.words)  # a filter
        or any(of not in ("ref", "source") for _, of in facts.texts)
    )


def names_in_sql(text: str) -> tuple[set[str], set[str]]:
    """What may be names of relations in a piece of SQL: with a schema, and bare.

    Where `BY_JINJA` is a part of a name, its last part is a bare one.

    Example:
        >>> dotted, bare = names_in_sql("select a.b from raw.t join __by_jinja__.u on true, v")
        >>> sorted(dotted), bare
        (['a.b', 'raw.t'], {'u'})
    """
    dotted: set[str] = set()
    bare = {match[1] for match in _READ.finditer(text)}
    for match in _DOTTED.finditer(text):
        if BY_JINJA in match[0]:
            bare.add(match[0].rpartition(".")[2].strip(' `"'))
        else:
            dotted.add(match[0])
    return dotted, bare - {BY_JINJA}


def words(text: str) -> set[str]:
    """The words of a text, lower case, and ``*`` where it has one.

    Example:
        >>> sorted(words("delete from {{ this }} where Id > 3"))
        ['3', 'delete', 'from', 'id', 'this', 'where']
    """
    return set(_WORDS.findall(text.lower()))


def hooks_of(node: Node) -> list[tuple[str, str]]:
    """The hooks of a node in order, each with when it runs; but those that only apply tags."""
    config = node.config
    if not (config.get("pre-hook") or config.get("post-hook")) or node.is_ephemeral:
        return []  # dbt runs nothing for what is ephemeral
    return [(when, sql) for when, sql in hooks_in(config) if not _APPLIES_TAGS.fullmatch(sql)]


def hooks_in(config: dict[str, Any]) -> list[tuple[str, str]]:
    """All hooks that a config names, in order."""
    return [
        (when, str(hook.get("sql") or "") if isinstance(hook, dict) else str(hook))
        for when in ("pre-hook", "post-hook")
        for hook in listed(config.get(when))
    ]


def listed(value: Any) -> list[Any]:
    """A setting that may be one or several, as a list."""
    return value if isinstance(value, list) else [] if value in (None, "") else [value]
