"""Whether a node compiles to the same SQL on both sides: its code, its macros, and what its Jinja reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import msgspec

from dbt_ripple.artifacts import Macro, Node, Project, References
from dbt_ripple.artifacts.project import DependsOn
from dbt_ripple.changes.dbt_vars import Variables
from dbt_ripple.graph.introspection import Introspection
from dbt_ripple.graph.macros import INTERNAL, Macros, dispatched
from dbt_ripple.graph.node_properties import property_names, read_of
from dbt_ripple.jinja.facts import ANY, facts_of
from dbt_ripple.jinja.reads import NOTHING, Reads, every_word_of, reads_of, types_in_graph
from dbt_ripple.reasons import Code, Reason

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_VARIABLES: Final = frozenset({"var"})
_ENVIRONMENT: Final = frozenset({"env_var", "env", "dbt_metadata_envs"})
_TARGET: Final = frozenset({"target", "schema", "database"})
_COMMAND: Final = frozenset({"flags"})
_NEVER: Final = frozenset(
    {
        *("_sql_results", "adapter", "adapter_macro", "builtins", "compiled_code", "context"),
        *("context_macro_stack", "defer_relation", "graph", "invocation_args_dict"),
        *("load_agate_table", "load_result", "model", "post_hooks", "pre_hooks", "render"),
        *("selected_resources", "store_raw_result", "store_result", "submit_python_job", "write"),
    }
)
"""What of dbt's context may differ between two compilations of the same text, or tells of them."""
_PURE: Final = frozenset(
    {
        *("adapter.dispatch", "adapter.quote", "adapter.quote_as_configured", "adapter.type"),
        "target.type",  # both sides are of one adapter
        *("builtins.ref", "builtins.source", "builtins.config"),
    }
)
_WAREHOUSE: Final = frozenset(
    "_sql_results adapter adapter_macro compiled_code load_agate_table load_result store_raw_result "
    "store_result submit_python_job write".split()
)
"""Those of `_NEVER` that show what the warehouse holds, or what was asked of it before."""
_MAY_CALL_ANYTHING: Final = frozenset({"context", "render"})
"""Those of `_NEVER` by which Jinja gets at what it does not name."""
_NODE: Final = frozenset({"model"})
"""Those that show the properties of the node itself."""
_ANY_TYPE: Final = frozenset({ANY})
_ALL_NODES: Final = frozenset({"graph"})
"""Those that show the properties of all nodes."""
_ANSWERED_AS_ON_BASE: Final = frozenset(
    f"macro.dbt.{name}"
    for name in ("is_incremental", "should_full_refresh", "should_store_failures")
)
_ONLY_LOOK: Final = frozenset({"get_columns_in_relation", "statement"})
"""Macros of dbt's that query the warehouse, and depend on nothing else that may differ."""
_UNSEEN: Final = frozenset(
    {
        *("access", "docs", "grants", "group", "meta", "persist_docs", "post-hook", "pre-hook"),
        "tags",
    }
)
"""Config that dbt itself does not look at while it compiles."""
_OF_MORE: Final = frozenset({"PROFILE", "PROFILES_DIR", "PROJECT_DIR", "TARGET", "VARS"})
"""Flags that tell of more than of the command."""
_PARTS_OF_NAMES: Final = frozenset(
    {
        *("alias", "api", "database", "identifier", "include", "incorporate", "information_schema"),
        *("name", "path", "quote", "replace_path", "schema", "split", "table"),
    }
)
"""Words by which Jinja gets at a part of a relation's name: such a text has names we cannot map."""


@dataclass(frozen=True)
class CompileConditions:
    """The conditions that are proved to be equal when both sides are compiled.

    Attributes:
        variables: dbt's vars, of the projects and of the command line.
        environment: environment variables.
        target: the target of the profile, all of it.
        command: the dbt command and its flags.
        introspection: what Jinja queries while compiling: the warehouse, and properties of the node itself
            and of the others in ``graph``. Each node's is compared apart.
        warehouse: what the warehouse shows, whatever is asked of it: one warehouse shows it to both sides.
    """

    variables: bool = False
    environment: bool = False
    target: bool = False
    command: bool = False
    introspection: bool = False
    warehouse: bool = False


NOTHING_PROVED: Final = CompileConditions()


def rename(sql: str, names: Mapping[str, str]) -> str:
    """Replace names of relations, as dbt writes them, by others, all at once.

    Example:
        >>> rename("select * from a.b join a.b_c join a.b.c", {"a.b": "x.y"})
        'select * from x.y join a.b_c join a.b.c'
    """
    longest = sorted(names, key=len, reverse=True)
    pattern = r"(?<![\w.`\"])(?:" + "|".join(map(re.escape, longest)) + r")(?![\w`\"]|\.\w)"
    return re.sub(pattern, lambda match: names[match[0]], sql) if names else sql


@dataclass(frozen=True)
class CompiledText:
    """SQL that a node of head provably compiles to."""

    sql: str


def asking_the_warehouse(project: Project, unique_ids: Iterable[str]) -> set[str]:
    """Those of the nodes whose text may depend on what the warehouse shows to dbt while it compiles.

    ``is_incremental()`` is no such question under ``--full-refresh``, but of a model that forbids that.
    """
    inputs = CompileInputs(project, project, NOTHING_PROVED)

    @cache
    def asks(unique_id: str) -> bool:
        node = project.nodes[unique_id]
        reach = inputs.reach(node)
        kept = node.config.get("full_refresh") is False
        return reach.looks or (kept and "is_incremental" in map(_plain, reach.words))

    return {u for u in unique_ids if any(map(asks, inlined(project, u)))}


def environment_read(project: Project) -> set[str]:
    """The environment variables that dbt may ask for as it compiles a project; ``ANY`` where any.

    Those of its YAML, which dbt reads as it parses, are not among them, nor those of ``on-run-*`` hooks,
    which it does not compile.
    """
    inputs = CompileInputs(project, project, NOTHING_PROVED)
    words, texts = set[str](), list[str]()
    for node in project.nodes.values():
        if node.resource_type == "operation":
            continue
        words |= inputs.reach(node).words
        texts += [node.raw_code, *_strings(node.test_metadata and node.test_metadata.kwargs)]
    # dbt's own macros ask for none. What replaces one of them is called by dbt itself, as `generate_schema_name` is.
    of_dbt = {dispatched(m.name) for m in project.macros.values() if m.package_name in INTERNAL}
    words |= {n for m in project.macros.values() if (n := dispatched(m.name)) in of_dbt}
    reached = inputs.reach_of(frozenset(words))
    names = set[str]().union(*(facts_of(text).environment for text in (*texts, *reached.of_users)))
    return names | {ANY} if "dbt_metadata_envs" in reached.words else names


class CompileInputs:
    """Both sides, and what was found out about their macros."""

    def __init__(
        self,
        base: Project,
        head: Project,
        conditions: CompileConditions,
        variables: Variables | None = None,
    ) -> None:
        self.base = base
        self.head = head
        self.conditions = conditions
        self.variables = variables
        self.macros = (_by_word(base), _by_word(head))
        self.references = (References(base), References(head))
        self.macro_names = self.macros[0].keys() | self.macros[1].keys()
        self.reaches: dict[frozenset[str], _Reach] = {}
        self.compared: dict[str, Reason | None] = {}
        self.graphs: dict[tuple[Reads, frozenset[str]], bool] = {}
        self.dbt_differs = _other_dbt(base, head)

    def text_of(self, unique_id: str) -> CompiledText | Reason:
        """The compiled SQL, or the reason why base's is not proved to be it."""
        reason = self.dbt_differs or self.differs(unique_id)
        if reason:
            return reason
        before = self.base.nodes[unique_id]
        if before.compiled_code is None:
            return Code.NOT_COMPILED_ON_BASE()
        return self.renamed(unique_id, before.compiled_code)

    def differs(self, unique_id: str) -> Reason | None:
        """Why a node may compile to another text than on base."""
        if unique_id not in self.compared:
            self.compared[unique_id] = Code.PART_OF_A_CYCLE()
            self.compared[unique_id] = self._differs(unique_id)
        return self.compared[unique_id]

    def _differs(self, unique_id: str) -> Reason | None:
        now, before = self.head.nodes[unique_id], self.base.nodes.get(unique_id)
        if before is None:
            return Code.NOT_ON_BASE_SIDE()
        if before.raw_code != now.raw_code or before.language != now.language:
            return Code.CODE_CHANGED()
        if before.config != now.config and not self.same_config(before, now):
            return Code.CONFIG_CHANGED()
        if before.test_metadata != now.test_metadata or before.column_name != now.column_name:
            return Code.ARGUMENTS_CHANGED()
        if before.depends_on.nodes != now.depends_on.nodes or (
            (now.refs or before.refs)
            and self.references[0].of(before) != self.references[1].of(now)
        ):
            return Code.REFERENCES_CHANGED()
        reach = self.reach(now)
        if reason := reach.reason or self.own_condition(now, reach):
            return reason
        # What one side has compiled or run, dbt has noted besides what both sides' parsing found.
        less, more = now.depends_on.macros, before.depends_on.macros
        if before.compiled_code is None and now.compiled_code is not None:
            less, more = more, less
        if not set(more).issuperset(less):
            return Code.MACROS_DISPATCHED_OTHERWISE()
        for parent in now.depends_on.nodes:
            here, there = self.head.nodes.get(parent), self.base.nodes.get(parent)
            if here is None or there is None:
                return Code.PARENT_ON_ONE_SIDE(parent=parent)
            if here.is_ephemeral != there.is_ephemeral:
                return Code.EPHEMERAL_ON_ONE_SIDE(name=here.name)
            if here.is_ephemeral and (reason := self.differs(parent)):
                return Code.INLINES(name=here.name, because=reason)
        return None

    def goes_by_target(self, unique_id: str) -> bool:
        """Whether the target may decide what a node reads: another one's text may read other columns.

        A string that only says something of the target (``'{{ target.name }}'``) decides nothing.
        """
        return any(
            word.partition(".")[0] in _TARGET and word not in _PURE
            for u in inlined(self.head, unique_id)
            for word in self.reach(self.head.nodes[u]).words
        )

    # -- macros and context -----------------------------------------------------------------------

    def reach(self, node: Node) -> _Reach:
        """Everything the node's Jinja reaches."""
        words = set(_jinja_words(_AS_A_VALUE.sub("''", node.raw_code)))
        if node.test_metadata is not None:
            for text in _strings(node.test_metadata.kwargs):
                words |= _jinja_words(text)
        words.update(_IN_A_STRING + macro.rpartition(".")[2] for macro in node.depends_on.macros)
        return self.reach_of(frozenset(filter(self.may_matter, words)))

    def reach_of(self, words: frozenset[str]) -> _Reach:
        """Everything these words reach."""
        if words not in self.reaches:
            self.reaches[words] = self._reach(words)
        return self.reaches[words]

    def may_matter(self, word: str) -> bool:
        """Whether a word of Jinja can be a macro, or a name of dbt's context that may vary."""
        plain = _plain(word)
        return (
            plain in self.macro_names
            or plain in _OF_MORE
            or word.partition(".")[0] in _CONTEXT
            or word.lstrip(_ATTRIBUTE) in _PARTS_OF_NAMES
        )

    def _reach(self, words: frozenset[str]) -> _Reach:
        waiting = sorted(words)
        seen = set(words)
        texts: list[str] = []
        of_users: list[str] = []
        reasons: list[Reason] = []
        while waiting:
            word = waiting.pop()
            before, now = (side.get(_plain(word), {}) for side in self.macros)
            if before.keys() != now.keys():
                reasons.append(Code.MACRO_ON_ONE_SIDE(name=_plain(word)))
            for unique_id, macro in now.items():
                other = before.get(unique_id, macro)
                if (macro.macro_sql, macro.depends_on) != (other.macro_sql, other.depends_on):
                    reasons.append(Code.MACRO_CHANGED(name=macro.name))
                if unique_id in _ANSWERED_AS_ON_BASE:
                    continue
                if self.conditions.introspection and macro.package_name in INTERNAL:
                    plain = dispatched(macro.name)
                    if plain in _ONLY_LOOK:
                        seen.add(f"adapter.{plain}")
                        continue
                texts.append(macro.macro_sql)
                if macro.package_name not in INTERNAL:
                    of_users.append(macro.macro_sql)
                further = [w for w in _jinja_words(macro.macro_sql) - seen if self.may_matter(w)]
                seen.update(further)
                waiting += sorted(further)
        reasons += filter(None, map(self.condition, sorted(seen)))
        return _Reach(frozenset(seen), texts, of_users, reasons[0] if reasons else None)

    def condition(self, word: str) -> Reason | None:
        """Why a name of dbt's context may stand for something else than on base."""
        if word in _PURE:
            return None
        name = word.partition(".")[0]
        if name in _WAREHOUSE | _NODE | _ALL_NODES and self.conditions.introspection:
            return None  # of each node it is asked apart
        if word.startswith("adapter."):
            return Code.LOOKS_WHILE_COMPILING(word=word)
        if name in _NEVER:
            return Code.ASKS_DBT(word=word)
        if (
            (name in _ENVIRONMENT and not self.conditions.environment)
            or (name in _TARGET and not self.conditions.target)
            or (name in _COMMAND and not self.conditions.command)
        ):
            return Code.READS_UNKNOWN_VALUE(word=word)
        return None

    def same_config(self, before: Node, now: Node) -> bool:
        """Whether the differences of the config are read by nothing that writes the SQL."""
        missing = object()
        differ = {
            key
            for key in {*before.config, *now.config}
            if before.config.get(key, missing) != now.config.get(key, missing)
        }
        if not (self.conditions.introspection and differ <= _UNSEEN):
            return False
        macros = self.macros_of_head
        called = macros.closure([*now.depends_on.macros, *macros.named_in(now.raw_code)])
        read = reads_of(now.raw_code, macros.internal)
        for unique_id in called & macros.user:
            read |= reads_of(macros.macros[unique_id].macro_sql, macros.internal)
        return not read.everything and read_of(before, read) == read_of(now, read)

    @cached_property
    def macros_of_head(self) -> Macros:
        """Head's macros, by what can call them."""
        return Macros(self.head)

    def own_condition(self, node: Node, reach: _Reach) -> Reason | None:
        """Why a value that a node's own Jinja asks for may differ from base.

        Its vars are those of its package; what it queries is compared apart where that is known.
        """
        words = reach.words
        if (
            not words.isdisjoint(_VARIABLES)
            and not self.conditions.variables
            and not (self.variables is not None and self.variables.same(node.package_name))
        ):
            return Code.READS_UNKNOWN_VALUE(word="var")
        if not self.conditions.introspection:
            return None
        if "flags" in words and (more := {_plain(w).upper() for w in words} & _OF_MORE):
            return Code.READS_UNKNOWN_VALUE(word=f"flags.{min(more)}")
        before = self.base.nodes[node.unique_id]
        if not words.isdisjoint(_NODE) and _shown(before) != _shown(node):
            return Code.READS_OWN_PROPERTIES()
        if not words.isdisjoint(_ALL_NODES) and not self.same_nodes(node, reach):
            return Code.ASKS_DBT(word="graph")
        if (
            not self.conditions.warehouse
            and reach.looks
            and not (
                node.depends_on.nodes
                and all(s.of(n) for s, n in zip(self.introspection, (before, node), strict=True))
            )
        ):
            return Code.LOOKS_AT_UNKNOWN()
        return None

    def same_nodes(self, node: Node, reach: _Reach) -> bool:
        """Whether all that a node's Jinja can find in ``graph`` is the same: any word in it may ask for it."""
        asked, types = NOTHING, set[str]()
        texts = [node.raw_code, *_strings(node.test_metadata and node.test_metadata.kwargs)]
        for words, walked in map(asked_of_graph, (*texts, *reach.of_users)):
            asked |= words
            types |= _ANY_TYPE if walked is None else walked
        asked = asked.limited_to(self.properties)
        key = asked, frozenset(types)
        if key not in self.graphs:
            self.graphs[key] = all(
                then is not None and now is not None and read_of(then, asked) == read_of(now, asked)
                for then, now in self.differing
                if not types.isdisjoint((ANY, *(n.resource_type for n in (then, now) if n)))
            )
        return self.graphs[key]

    @cached_property
    def properties(self) -> frozenset[str]:
        """All names under which a node of either side may have a property."""
        return property_names((*self.base.nodes.values(), *self.head.nodes.values()))

    @cached_property
    def differing(self) -> list[tuple[Node | None, Node | None]]:
        """The nodes that are not defined alike on both sides, or are on one side only."""
        unique_ids = dict.fromkeys((*self.base.nodes, *self.head.nodes))
        pairs = ((self.base.nodes.get(u), self.head.nodes.get(u)) for u in unique_ids)
        return [(a, b) for a, b in pairs if not (a and b and defined(a) == defined(b))]

    @cached_property
    def introspection(self) -> tuple[Introspection, Introspection]:
        """What each side's nodes query."""
        base, head = (Introspection(side, Macros(side)) for side in (self.base, self.head))
        return base, head

    # -- names of relations -----------------------------------------------------------------------

    def renamed(self, unique_id: str, sql: str, *, back: bool = False) -> CompiledText | Reason:
        """Base's SQL with head's names of relations, or the reason why they cannot be mapped.

        ``back`` is the other way round: head's SQL with base's names.
        """
        of, to = (self.head, self.base) if back else (self.base, self.head)
        names = names_on_other_side(of, to, nodes_above(self.head, unique_id))
        if isinstance(names, AmbiguousName):
            return Code.NAME_OF_TWO(name=names.name, side="base" if back else "head")
        if not names:
            return CompiledText(sql)
        node = self.head.nodes[unique_id]
        reach = self.reach(node)
        if parts := {w.lstrip(_ATTRIBUTE) for w in reach.words} & _PARTS_OF_NAMES:
            return Code.USES_PART_OF_NAME(part=min(parts))
        written = "\n".join((node.raw_code, repr(node.test_metadata), *reach.texts))
        for name in names:
            if name in written:
                return Code.NAME_IN_CODE(name=name)
        return CompiledText(rename(sql, names))


@dataclass(frozen=True)
class _Reach:
    """What Jinja reaches: words, texts of macros, and what of these is not proved to be equal."""

    words: frozenset[str]
    texts: list[str]
    of_users: list[str]
    reason: Reason | None

    @property
    def looks(self) -> bool:
        """Whether it may ask the warehouse something."""
        asked = _WAREHOUSE | _MAY_CALL_ANYTHING
        return any(w.partition(".")[0] in asked and w not in _PURE for w in self.words)


_CONTEXT: Final = _NEVER | _VARIABLES | _ENVIRONMENT | _TARGET | _COMMAND | _PARTS_OF_NAMES
_IN_A_STRING: Final = "'"
"""Stands before a word that was found in a string, where it can only be the name of a macro."""
_ATTRIBUTE: Final = "."
"""Stands before an attribute, which can be a macro of a package, and no name of dbt's context."""
_AS_A_VALUE: Final = re.compile(r"'\{\{-?\s*(?:(?:target|this)\.\w+|schema|database)\s*-?\}\}'")
"""A string of SQL that is a piece of the target. It decides nothing of the rest of the text."""


def _plain(word: str) -> str:
    return word.lstrip(_IN_A_STRING + _ATTRIBUTE)


@dataclass(frozen=True)
class AmbiguousName:
    """A relation's name that means two relations on the other side."""

    name: str


def names_on_other_side(
    of: Project, to: Project, unique_ids: Iterable[str]
) -> dict[str, str] | AmbiguousName:
    """The relations whose names differ between the sides, each name with the other side's."""
    names: dict[str, str] = {}
    for unique_id in unique_ids:
        if unique_id in of.nodes and unique_id in to.nodes:
            sides = _names_of(of.nodes[unique_id]), _names_of(to.nodes[unique_id])
            for before, now in zip(*sides, strict=False):
                if names.setdefault(before, now) != now:
                    return AmbiguousName(before)
    return {before: now for before, now in names.items() if before != now}


def _names_of(node: Node) -> list[str]:
    """How dbt writes the name of a node; of a function it does not say whether it quotes it, and by what."""
    if node.resource_type != "function":
        return [node.relation_name] if node.relation_name else []
    parts = [part for part in (node.database, node.schema, node.alias or node.name) if part]
    return [".".join(f"{quote}{part}{quote}" for part in parts) for quote in ('"', "`", "")]


def nodes_above(head: Project, unique_id: str) -> Iterator[str]:
    """The node and all relations its text may name, through what is ephemeral."""
    waiting, seen = [unique_id], {unique_id}
    while waiting:
        current = waiting.pop()
        yield current
        node = head.nodes.get(current)
        if node is not None and (current == unique_id or node.is_ephemeral):
            for parent in node.depends_on.nodes:
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)


def inlined(project: Project, unique_id: str) -> list[str]:
    """The node and the ephemeral models that are part of its text."""
    nodes = project.nodes
    above = nodes_above(project, unique_id)
    return [u for u in above if u == unique_id or (u in nodes and nodes[u].is_ephemeral)]


def _shown(node: Node) -> Node:
    """A node without what compiling it adds: what ``model`` shows."""
    return msgspec.structs.replace(node, compiled=False, compiled_code=None, root_path=None)


def defined(node: Node) -> Node:
    """A node as the project defines it: of the macros, dbt notes some only as it compiles."""
    return msgspec.structs.replace(_shown(node), depends_on=DependsOn(nodes=node.depends_on.nodes))


def _by_word(project: Project) -> dict[str, dict[str, Macro]]:
    """Macros by every word that may call them: ``spark__star`` is what ``star`` dispatches to.

    Where it is known which adapters' versions dbt dispatches to, another one's is called by its own
    name only.
    """
    macros: dict[str, dict[str, Macro]] = {}
    adapters = _DISPATCHED_TO.get(project.metadata.adapter_type or "")
    others = _DISPATCHED_TO.keys() - adapters if adapters is not None else frozenset[str]()
    for unique_id, macro in project.macros.items():
        macros.setdefault(macro.name, {})[unique_id] = macro
        prefix, _, plain = macro.name.partition("__")
        if plain and prefix not in others:
            macros.setdefault(plain, {})[unique_id] = macro
    return macros


_DISPATCHED_TO: Final = {
    "bigquery": frozenset({"bigquery"}),
    "databricks": frozenset({"databricks", "spark"}),
    "duckdb": frozenset({"duckdb"}),
    "postgres": frozenset({"postgres"}),
    "redshift": frozenset({"redshift", "postgres"}),
    "snowflake": frozenset({"snowflake"}),
    "spark": frozenset({"spark"}),
    "trino": frozenset({"trino"}),
}
"""By adapter, the adapters whose versions of a macro `adapter.dispatch` may take."""


def _other_dbt(base: Project, head: Project) -> Reason | None:
    """Why no compiled SQL can be reused: two versions of dbt may compile one text differently."""
    for what, before, now in (
        ("dbt", base.metadata.dbt_version, head.metadata.dbt_version),
        ("adapter", base.metadata.adapter_type, head.metadata.adapter_type),
        ("project", base.metadata.project_name, head.metadata.project_name),
    ):
        if before != now:
            return Code.COMPILED_BY_ANOTHER(what=what, base=str(before), head=str(now))
    return None


@cache
def asked_of_graph(text: str) -> tuple[Reads, frozenset[str] | None]:
    """What a text may ask of nodes, and the types of those it walks over in ``graph``; None for any."""
    return every_word_of(text), types_in_graph([text])


@cache
def _jinja_words(text: str) -> frozenset[str]:
    """The names that a text takes from dbt's context, attributes, and the words of its strings.

    What is an attribute of ``adapter``, ``builtins`` or ``target`` stands with it.

    Example:
        >>> sorted(_jinja_words("select a {# b #} {%- set c = {'d': {'e': adapter.type()}} %}"))
        ["'d", "'e", '.type', 'adapter.type']
        >>> sorted(_jinja_words("{{ relation.render() ~ render(target.name) }}"))
        ['.render', 'relation', 'render', 'target.name']
    """
    facts = facts_of(text)
    if not facts.readable:
        return frozenset({"context"})
    words = {_IN_A_STRING + word for string in facts.strings for word in _WORD.findall(string)}
    for use in facts.uses:
        first, *steps = (step for step in use.path if not step.startswith(("(", "[")))
        if first in ("adapter", "builtins", "target") and steps:
            first = f"{first}.{steps[0]}"
        if not first.startswith("target."):  # whose attributes are values
            words.update(_ATTRIBUTE + step for step in steps)
        if first and not first.startswith("%"):
            words.add(first)
    return frozenset(words)


def _strings(value: object) -> Iterator[str]:
    """All strings in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
