"""Which part of a node's config changes data (rule 7).

A view, a table and an inlined model have the same data, and so has everything that only matters to
readers, owners or storage. What an incremental model, a snapshot or a hook does with rows is not
in compiled SQL, but in the config and text that this module reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from dbt_ripple.artifacts import Node, Project, References
from dbt_ripple.artifacts.project import WITH_SQL
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.functions import VOLATILE_NAMES
from dbt_ripple.flow.ir import FILTER, JOIN
from dbt_ripple.graph.file_reads import files_read, modules_imported
from dbt_ripple.graph.hook_reader import HookEffects
from dbt_ripple.graph.macros import OWN, Macros, environment_in_python
from dbt_ripple.graph.node_properties import (
    KEEPING_ROWS,
    SAYING_PLACE,
    as_configured,
    constraints,
    counted,
    declared,
    hooks_in,
    kind_of,
    listed,
    place,
    property_names,
    read_of,
    run_with,
    written_by_declaration,
)
from dbt_ripple.jinja.facts import (
    OF_THE_RUN,
    Argument,
    Facts,
    asks_the_graph,
    calls_any_macro,
    configured,
    facts_of,
    looks_at_it,
    names_this,
    names_this_or_model,
)
from dbt_ripple.jinja.facts import asks as asks_of
from dbt_ripple.jinja.hook_runs import THIS
from dbt_ripple.jinja.kept import cached_method
from dbt_ripple.jinja.reads import (
    NOTHING,
    Reads,
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
    place_of_branches,
)

OF_COLUMNS: Final = ("unique_key", "updated_at", "check_cols")
"""Config that names columns of the node: what counts is what these are, not how they are called."""

_WITHOUT_KEY: Final = frozenset({"append", "insert_overwrite", "microbatch"})
"""Incremental strategies that do not look at unique_key."""


_APPLIES_TAGS: Final = re.compile(r"\s*\{\{-?\s*dbt_ripple\.apply_tags\(\s*\)\s*-?\}\}\s*")
"""See `graph.macros.APPLY_TAGS`."""

_RUN: Final = frozenset({"model", "seed", "snapshot", "test"})
_WORDS: Final = re.compile(r"\w+|\*")


class ConfigFingerprints:
    """The settings of one project's nodes that change data."""

    def __init__(self, project: Project, macros: Macros) -> None:
        self.project = project
        self.macros = macros
        self.hook_reader = macros.hook_reader
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
        if self.project.session:
            settings["session"] = self.project.session
        if self.may_be_other_sql(node):
            called = self.macros.fingerprint(node.depends_on.macros)
            settings |= self._unseen_code("command", node, normalised(node.raw_code), called)
        if node.is_ephemeral and node.compiled_code is not None:
            return settings  # it is what its readers' SQL shows: no hook of it runs
        if hooks := self.own_hooks(node):
            settings["hooks"] = [(when, self.text_of_hook(sql, node)) for when, sql in hooks]
            settings["hook macros"] = self.hook_code(node)
            settings["hook vars"] = self.macros.variables(" ".join(sql for _, sql in hooks))
            if VOLATILE_NAMES & self.words_of_hooks(node):  # in each relation other values
                settings["hook of"] = node.unique_id
            done = (self.hook_reader.of(sql, node.package_name) for _, sql in hooks)
            if any(self.references_in(each, node) for each in done):
                settings["hook references"] = self.references.of(node)
        if config.get("sql_header"):
            header = as_configured(node, "sql_header", config["sql_header"])
            settings["sql_header"] = normalised(str(header))
        materialized = kind_of(node)
        project_macros = self.macros.of_materialization(materialized, node.package_name)
        if project_macros:
            settings["materialization"] = project_macros
        if materialized in KEEPING_ROWS:
            naming = self.naming(node.package_name)
            settings["kind"] = materialized, place(node), naming  # in a new place it is new
        if node.resource_type != "test":
            settings.update(counted(node, self.adapter_type))
            if writing := written_by_declaration(node):
                settings["of columns"] = writing
        if columns and materialized in KEEPING_ROWS:
            settings |= {name: config[name] for name in OF_COLUMNS if config.get(name)}
        hidden, run = self.hidden(node)
        if hidden:
            called = self.macros.fingerprint(run)
            settings |= self._unseen_code("branch", node, hidden, called)
            settings["place of branches"] = place_of_branches(node.raw_code)
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

    def _unseen_code(self, kind: str, node: Node, text: str, called: bytes) -> dict[str, Any]:
        """What decides what a text of a node gives that no compiled SQL shows."""
        return {
            {"command": "commands", "branch": "branches"}[kind]: text,
            f"{kind} vars": self.macros.variables(text),
            f"{kind} macros": called,
            f"{kind} references": self.references.of(node),
        }

    # -- what something reads ---------------------------------------------------------------------

    def reads(self, node: Node, unseen: list[str]) -> Reads:
        """What of a node's properties is read where no compiled SQL shows it: in `unseen`, say."""
        reads = NOTHING
        if run := self.macros.run_by(kind_of(node), node.package_name):
            reads |= self.macros.reads(run)
        for text in unseen:
            reads |= self._reads_in(text)
        if node.is_python:
            reads |= reads_of_python(node.raw_code)
        elif node.compiled_code is None and node.resource_type in WITH_SQL:
            reads |= self.macros.reads(node.depends_on.macros)
        return reads

    def _reads_in(self, text: str) -> Reads:
        called = self.macros.reads(self.macros.named_in(text))
        return reads_of(text, self.macros.internal) | called

    def unseen(self, node: Node, hooks: list[tuple[str, str]]) -> list[str]:
        """The pieces of Jinja that run for a node and that its compiled SQL does not show."""
        texts = [sql for _, sql in hooks]
        if node.is_python or node.resource_type not in WITH_SQL:
            return texts
        if node.compiled_code is None or self.may_be_other_sql(node):
            return [*texts, node.raw_code]
        return [text for text in (*texts, self.hidden(node)[0]) if text]

    def hidden(self, node: Node) -> tuple[str, list[str]]:
        """The Jinja of an incremental model that no compiled SQL shows, and the user's macros that it calls."""
        if node.materialized != "incremental":
            return "", []
        if hidden := "\n".join(branches(node.raw_code)):
            return hidden, self.macros.named_in(hidden)
        asking = self.macros.that_ask(node.depends_on.macros)
        return normalised(node.raw_code) if asking else "", asking

    def may_be_other_sql(self, node: Node) -> bool:
        """Whether a node may be built from other SQL than its compiled SQL.

        It may where it asks which command runs, or queries the warehouse and what it finds there
        decides: its own relation is there or is not.
        """
        if node.compiled_code is None or node.resource_type not in WITH_SQL or node.is_python:
            return False
        asked, own = [Facts.asks_which_command], node.raw_code
        if node.materialized == "incremental":  # of which `branches` are told apart
            own = outside_of_branches(own)
        else:
            asked.append(Facts.asks_for_full_refresh)
        called = node.depends_on.macros
        return any(
            asks_of(node.raw_code, what) or self.macros.that_ask(called, what) for what in asked
        ) or self._looks_at_itself(node, own)

    def _looks_at_itself(self, node: Node, own: str) -> bool:
        """Whether a node may be built from other SQL where its own relation is there, or is not.

        What queries the warehouse and names the relation that it builds may write other SQL where
        that is not there yet, or is another. In a data test ``model`` is what is tested.
        """
        called = node.depends_on.macros
        if not (asks_of(own, looks_at_it) or self.macros.any_that(called, looks_at_it)):
            return False
        of_itself = names_this if node.resource_type == "test" else names_this_or_model
        if asks_of(own, of_itself) or self.macros.any_that(called, of_itself):
            return True
        if node.resource_type == "test":
            return False
        name = node.alias or node.name
        texts = (text for text in (own, *self.macros.texts_of(called)) if name in text)
        word = re.compile(rf"\b{re.escape(name)}\b")
        return any(word.search(_said(facts_of(text))) for text in texts)

    def reads_everywhere(
        self, node: Node, hooks: list[tuple[str, str]], unseen: list[str]
    ) -> tuple[Reads, frozenset[str] | None]:
        """What of *all* nodes is read for one of them: by ``graph``, in a hook or its like."""
        run = self.macros.run_by(kind_of(node), node.package_name)
        of_hooks = {sql for _, sql in hooks}
        pieces = [*self.macros.texts_of(run)]
        for text in unseen:
            if text in of_hooks:
                pieces += self.hook_reader.of(text, node.package_name).texts
            else:
                pieces += [text, *self.macros.texts_of(self.macros.named_in(text))]
        return self._read_everywhere(tuple(pieces))

    @cached_method
    def _read_everywhere(self, pieces: tuple[str, ...]) -> tuple[Reads, frozenset[str] | None]:
        """What these texts, which run together, read of all nodes.

        Returns:
            What is read; and of which types of nodes, None where that may be any.
        """
        asking = [piece for piece in pieces if asks_of(piece, asks_the_graph)]
        reads = NOTHING
        for piece in asking:
            reads |= reads_of(piece, self.macros.internal)
        if asking:  # what it finds there, it may pass on
            for piece in pieces:
                reads |= every_word_of(piece)
        return reads, types_in_graph(asking)

    def read_by(self, text: str, node: Node, done: HookEffects) -> bytes:
        """A fingerprint of the properties that a hook of a node reads; empty for none."""
        parts = []
        if reads := self._reads_in(text):
            parts.append(repr(read_of(node, reads)).encode())
        everywhere, kinds = self._read_everywhere(done.texts)
        if everywhere:
            parts.append(self.of_all_nodes(everywhere, kinds))
        return digest(*parts) if parts else b""

    def of_all_nodes(self, reads: Reads, types: frozenset[str] | None) -> bytes:
        """A fingerprint of what is read of all nodes of these types."""
        # Macros that walk over ``graph`` are taken to read every word of theirs and of the hook that
        # calls them. Most words are no property of any node, and hooks that differ by them read the same.
        reads = reads.limited_to(self._names_of(types))
        if reads.everything:
            return self._of_each(reads, types)
        # Each property by itself, as most of what reads one reads others that are asked for, too.
        names = {"alias" if name in SAYING_PLACE else name for name in reads.names}
        single = [Reads(names=frozenset({name})) for name in sorted(names)]
        single += [Reads(parts=frozenset({part})) for part in sorted(reads.parts)]
        return digest(*(self._of_each(each, types) for each in single))

    @cached_method
    def _of_types(self, types: frozenset[str] | None) -> list[tuple[str, Node]]:
        nodes = sorted(self.project.nodes.items())
        return [(u, node) for u, node in nodes if types is None or node.resource_type in types]

    @cached_method
    def _names_of(self, types: frozenset[str] | None) -> frozenset[str]:
        return property_names(node for _, node in self._of_types(types))

    @cached_method
    def _of_each(self, reads: Reads, types: frozenset[str] | None) -> bytes:
        """A fingerprint of what is read of each of these nodes."""
        of_each = (repr((u, read_of(node, reads))).encode() for u, node in self._of_types(types))
        return digest(*of_each)

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
            [(name, self._without_run(node, name, value)) for name, value in run_with(node)],
            (node.language, place(node), constraints(node), declared(node)),
            self.naming(node.package_name),
        ]
        if others := [hook for hook in hooks_of(node) if hook not in self.own_hooks(node)]:
            written = [(when, self.text_of_hook(sql, node)) for when, sql in others]
            settings.append([written, self._codes(node, others)])
        config = node.config
        if config.get("labels_from_meta") or len(hooks_in(config)) != len(hooks_of(node)):
            settings.append(
                (node.meta, node.tags, [(c.name, c.meta) for c in node.columns.values()])
            )
        return digest(b"built with", repr(settings).encode())

    @cached_method
    def naming(self, package: str) -> bytes:
        """A fingerprint of the user's macros that name relations of a package."""
        return self.macros.fingerprint(self.macros.naming(package))

    # -- hooks and branches -----------------------------------------------------------------------

    def own_hooks(self, node: Node) -> list[tuple[str, str]]:
        """The node's hooks that may change its own relation, as `hooks_of` gives them."""
        return [
            (when, sql)
            for when, sql in hooks_of(node)
            if self.hook_reader.of(sql, node.package_name).may_change(node)
        ]

    def text_of_hook(self, sql: str, node: Node) -> str:
        """A hook without layout; one that has the id or the time of a run in it, as ``config()`` writes it."""
        return self._rendered_by_run(node).get(sql) or normalised(sql)

    def _without_run(self, node: Node, name: str, value: Any) -> Any:
        """A setting; of hooks with something of a run what is not told apart by `text_of_hook`."""
        of_run = name in ("pre-hook", "post-hook") and self._rendered_by_run(node)
        return without_ids_and_times(repr(value)) if of_run else value

    def _rendered_by_run(self, node: Node) -> dict[str, str]:
        """The hooks that the node's own ``config()`` gives of a run's id or time, each with what decides the rest of it.

        dbt puts these after all that yml files say. To a node of a package the project may add further ones.
        """
        if node.package_name != self.project.name or not ID_OR_TIME.search(str(node.config)):
            return {}
        hooks: dict[str, str] = {}
        for argument in configured(node.raw_code):
            key = argument.name.replace("_", "-")
            if key in ("pre-hook", "post-hook") and (called := self._rendering(argument)):
                for _, sql in hooks_in({key: listed(node.config.get(key))[-argument.entries :]}):
                    own = sql.replace(node.relation_name or "\0", "{{ this }}")  # rule 6
                    text = without_ids_and_times(normalised(own))
                    hooks[sql] = f"{text}\n{argument.expression}\n{called}"
        return hooks

    def _rendering(self, argument: Argument) -> str | None:
        """A fingerprint of what renders an argument of ``config``, where that is macros, and else the run alone."""
        macros, names = self.macros, argument.names - OF_THE_RUN
        if not names <= macros.users_by_name.keys():
            return None
        called = [u for name in sorted(names) for u in macros.users_by_name[name]]
        asks = macros.any_that(called, lambda f: not _ASKED_WHILE_PARSING.isdisjoint(f.words))
        return None if asks else f"by {macros.fingerprint(called).hex()}"

    def run_by_hook(self, sql: str, node: Node) -> set[str]:
        """The macros that a hook of a node may run, by unique_id."""
        done = self.hook_reader.of(sql, node.package_name)
        if done.because is None:
            return {*done.called}
        return {*self.macros.closure(self.macros.named_in(sql))}

    def references_in(self, done: HookEffects, node: Node) -> list[str]:
        """What the references of a node mean, where a hook of it refers to anything but the node itself."""
        refers = any(target.place not in (None, THIS) for target in done.reads | done.writes)
        return self.references.of(node) if refers or done.because is not None else []

    def hook_code(self, node: Node) -> bytes:
        """A fingerprint of the user's macros that these hooks run; empty for none."""
        codes = self._codes(node, self.own_hooks(node))
        return digest(*codes) if any(codes) else b""

    def _codes(self, node: Node, hooks: list[tuple[str, str]]) -> list[bytes]:
        package = node.package_name
        return [self.code_of_hook(sql, self.hook_reader.of(sql, package)) for _, sql in hooks]

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

    def unseen_variables(self, node: Node) -> tuple[set[str], set[str]]:
        """The vars and the environment variables used where compiled SQL does not show them.

        That is in hooks, those of a run, too, in branches that were not compiled, in the user's macros
        that these or a materialization run, and in Python.
        """
        hooks = hooks_of(node)
        texts: list[str] = []
        called: set[str] = set()
        if node.resource_type == "operation" and node.package_name != OWN:
            hooks = [("", node.raw_code)]
        elif node.resource_type in _RUN and not node.is_ephemeral:
            called.update(self.macros.run_by(kind_of(node), node.package_name))
            if node.compiled_code and (hooks or called or node.materialized == "incremental"):
                texts = self.unseen(node, [])
            called.update(u for text in texts for u in self.macros.named_in(text))
            if node.materialized == "incremental":
                called.update(self.macros.that_ask(node.depends_on.macros))
        for _, sql in hooks:
            texts += self.hook_reader.of(sql, node.package_name).texts
        names, environment = self._asked_for((*texts, *self.macros.texts_of(called)))
        in_python = environment_in_python(node.raw_code) if node.is_python else set()
        return names, environment | in_python

    @cached_method
    def _asked_for(self, texts: tuple[str, ...]) -> tuple[set[str], set[str]]:
        """The vars and the environment variables that texts use."""
        facts = [facts_of(text) for text in texts]
        return (
            {name for text in texts for name in self.macros.variables_in(text)},
            {name for each in facts for name in each.environment},
        )

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
            not facts.readable
            or not facts.words <= _NAMES_OF_RELATIONS
            or any(of not in ("ref", "source") for _, of in facts.texts)
            for facts in (facts_of(sql) for _, sql in self.own_hooks(node))
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


def _said(facts: Facts) -> str:
    """The words and strings of a text, but those that tell dbt what to call the node; one in each line."""
    strings = (text for text, of in facts.texts if of != "config")
    return "\n".join((*sorted(facts.words), *sorted(strings)))


_NAMES_OF_RELATIONS: Final = frozenset(
    {"database", "identifier", "name", "ref", "schema", "source", "target", "this"}
)
"""The words of Jinja that only names relations."""


def words(text: str) -> set[str]:
    """The words of a text, lower case, and ``*`` where it has one.

    Example:
        >>> sorted(words("delete from {{ this }} where Id > 3"))
        ['3', 'delete', 'from', 'id', 'this', 'where']
    """
    return set(_WORDS.findall(text.lower()))


ID_OR_TIME: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
"""What ``invocation_id`` and times of a run are written as."""


_ASKED_WHILE_PARSING: Final = frozenset(
    "context env_var flags graph model render target var".split()
)
"""What may give another date on another day for another reason than the day (`this` is part of the text)."""


def without_ids_and_times(text: str) -> str:
    """A text that was rendered, without ids and times.

    Example:
        >>> without_ids_and_times("call log('2026-01-02 03:04:05.678', 1)")
        "call log('?', 1)"
    """
    return ID_OR_TIME.sub("?", text)


def hooks_of(node: Node) -> list[tuple[str, str]]:
    """The hooks of a node in order, each with when it runs; but those that only apply tags."""
    config = node.config
    if not (config.get("pre-hook") or config.get("post-hook")) or node.is_ephemeral:
        return []  # dbt runs nothing for what is ephemeral
    return [(when, sql) for when, sql in hooks_in(config) if not _APPLIES_TAGS.fullmatch(sql)]
