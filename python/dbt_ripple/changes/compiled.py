"""Base's compiled SQL for what head did not touch, so that dbt need not compile all of head.

A node of head that dbt has only parsed takes over base's compiled SQL where the text dbt would
compile is proved to be the same but for the names of relations, which are mapped to head's. Proved
means, of everything that enters a compiled text:

* its own: code, config, arguments of a generic test, what each of its references means (in order,
  with versions: `ref('m')` is another model once `latest_version` has moved), and which of that is
  ephemeral and so part of the text (then all of this holds for it, too);
* macros: every macro of either side whose name stands anywhere in the Jinja it reaches, called,
  dispatched or in a string, has the same text. That is wider than dbt's own
  ``state:modified.macros``, which does not see calls in branches that are dead while it parses
  (``is_incremental()``, ``execute``);
* the context: ``var``, ``env_var``, ``target`` and the like only where the caller has proved them
  the same (:class:`Conditions`), what looks at the warehouse, the graph or the command line never
  (rule 11). ``is_incremental()`` and ``should_store_failures()`` are answered as on base,
  ``run_started_at`` is base's.

Everything else is compiled, not guessed at: the reason says which of these it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from dbt_ripple.artifacts import Macro, Node, Project, References
from dbt_ripple.graph.jinja import tags

_TOKEN: Final = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"""|(?P<name>[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)(?P<set>\s*=(?!=))?""",
    re.S,
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_SIGNATURE: Final = re.compile(r"\{%-?\s*(?:macro|test)\s+\w+\s*\((.*?)\)\s*-?%\}", re.S)
_PARAMETER: Final = re.compile(r"(?:^|,)\s*(\w+)")

_VARIABLES: Final = frozenset({"var"})
_ENVIRONMENT: Final = frozenset({"env_var", "env", "dbt_metadata_envs"})
_TARGET: Final = frozenset({"target", "schema", "database"})
_COMMAND: Final = frozenset({"flags"})
_NEVER: Final = frozenset(
    {
        *("_sql_results", "adapter", "adapter_macro", "builtins", "compiled_code", "context"),
        *("context_macro_stack", "defer_relation", "graph", "invocation_args_dict"),
        *("load_agate_table", "load_result", "model", "post_hooks", "pre_hooks", "render"),
        *("selected_resources", "store_raw_result", "store_result", "submit_python_job"),
        *("thread_id", "write"),
    }
)
"""What of dbt's context may differ between two compilations of the same text, or tells of them."""
_PURE: Final = frozenset(
    {
        *("adapter.dispatch", "adapter.quote", "adapter.quote_as_configured", "adapter.type"),
        *("builtins.ref", "builtins.source", "builtins.config"),
    }
)
_ANSWERED_AS_ON_BASE: Final = frozenset(
    f"macro.dbt.{name}"
    for name in ("is_incremental", "should_full_refresh", "should_store_failures")
)
_PARTS_OF_NAMES: Final = frozenset(
    {
        *("alias", "api", "database", "identifier", "include", "incorporate", "information_schema"),
        *("name", "path", "quote", "replace_path", "schema", "split", "table"),
    }
)
"""Words by which Jinja gets at a part of a relation's name: such a text has names we cannot map."""


@dataclass(frozen=True)
class Conditions:
    """What both sides are proved to be compiled under alike.

    Attributes:
        variables: dbt's vars, of the projects and of the command line.
        environment: environment variables.
        target: the target of the profile, all of it.
        command: the dbt command and its flags.
    """

    variables: bool = False
    environment: bool = False
    target: bool = False
    command: bool = False


NOTHING_PROVED: Final = Conditions()


@dataclass
class Taken:
    """What :func:`take_over` did.

    Attributes:
        taken: the unique_ids of head's nodes that now have base's compiled SQL.
        rest: head's other nodes without compiled SQL, each with the reason why not.
    """

    taken: list[str] = field(default_factory=list)
    rest: dict[str, str] = field(default_factory=dict)


def take_over(base: Project, head: Project, conditions: Conditions = NOTHING_PROVED) -> Taken:
    """Give head's uncompiled nodes base's compiled SQL where that is proved to be theirs.

    Args:
        base: compiled.
        head: parsed; the nodes that are taken over are changed in place.
        conditions: what is proved to be the same for both.

    Returns:
        What was taken over, and the rest, both in head's order.
    """
    done = Taken()
    sides = _Sides(base, head, conditions)
    for node in head.uncompiled():
        text = sides.text_of(node.unique_id)
        if isinstance(text, _Text):
            node.compiled_code = text.sql
            done.taken.append(node.unique_id)
        else:
            done.rest[node.unique_id] = text
    return done


def rename(sql: str, names: Mapping[str, str]) -> str:
    """Replace names of relations, as dbt writes them, by others, all at once.

    Example:
        >>> rename("select * from a.b join a.b_c join a.b.c", {"a.b": "x.y"})
        'select * from x.y join a.b_c join a.b.c'
    """
    longest = sorted(names, key=len, reverse=True)
    pattern = r"(?<![\w.`\"])(?:" + "|".join(map(re.escape, longest)) + r")(?![\w`\"]|\.\w)"
    return re.sub(pattern, lambda found: names[found[0]], sql) if names else sql


def other_names(base: Project, head: Project) -> dict[str, str]:
    """Base's names of relations that have another one on head, each with that."""
    return {
        then.relation_name: now.relation_name
        for unique_id, now in head.nodes.items()
        if (then := base.nodes.get(unique_id)) is not None
        and then.relation_name
        and now.relation_name
        and then.relation_name != now.relation_name
    }


@dataclass(frozen=True)
class _Text:
    sql: str


class _Sides:
    """Both sides, and what was found out about their macros."""

    def __init__(self, base: Project, head: Project, conditions: Conditions) -> None:
        self.base = base
        self.head = head
        self.conditions = conditions
        self.macros = (_by_word(base), _by_word(head))
        self.references = (References(base), References(head))
        self.known = self.macros[0].keys() | self.macros[1].keys()
        self.reaches: dict[frozenset[str], _Reach] = {}
        self.compared: dict[str, str | None] = {}
        self.otherwise = _other_dbt(base, head)

    def text_of(self, unique_id: str) -> _Text | str:
        """The compiled SQL, or the reason why base's is not proved to be it."""
        reason = self.otherwise or self.differs(unique_id)
        if reason:
            return reason
        before = self.base.nodes[unique_id]
        if before.compiled_code is None:
            return "base has not compiled it"
        return self.renamed(unique_id, before.compiled_code)

    def differs(self, unique_id: str) -> str | None:
        """Why a node may compile to another text than on base."""
        if unique_id not in self.compared:
            self.compared[unique_id] = "it is part of a cycle"
            self.compared[unique_id] = self._differs(unique_id)
        return self.compared[unique_id]

    def _differs(self, unique_id: str) -> str | None:
        now, before = self.head.nodes[unique_id], self.base.nodes.get(unique_id)
        if before is None:
            return "base does not have it"
        if before.raw_code != now.raw_code or before.language != now.language:
            return "its code changed"
        if before.config != now.config:
            return "its config changed"
        if before.test_metadata != now.test_metadata or before.column_name != now.column_name:
            return "its arguments changed"
        if before.depends_on.nodes != now.depends_on.nodes or (
            (now.refs or before.refs)
            and self.references[0].of(before) != self.references[1].of(now)
        ):
            return "what it refers to changed"
        if reason := self.reach(now).reason:
            return reason
        # Base may have run it, and then dbt has noted what ran besides.
        if not set(before.depends_on.macros).issuperset(now.depends_on.macros):
            return "its macros are dispatched otherwise"
        for parent in now.depends_on.nodes:
            here, there = self.head.nodes.get(parent), self.base.nodes.get(parent)
            if here is None or there is None:
                return f"one side does not have {parent}"
            if here.is_ephemeral != there.is_ephemeral:
                return f"{here.name} is ephemeral on one side only"
            if here.is_ephemeral and (reason := self.differs(parent)):
                return f"{here.name} is part of it: {reason}"
        return None

    # -- macros and context -----------------------------------------------------------------------

    def reach(self, node: Node) -> _Reach:
        """Everything the node's Jinja reaches."""
        words = set(_jinja_words(node.raw_code))
        if node.test_metadata is not None:
            for text in _strings(node.test_metadata.kwargs):
                words |= _jinja_words(text)
        words.update(_IN_A_STRING + macro.rpartition(".")[2] for macro in node.depends_on.macros)
        key = frozenset(filter(self.tells, words))
        if key not in self.reaches:
            self.reaches[key] = self._reach(key)
        return self.reaches[key]

    def tells(self, word: str) -> bool:
        """Whether a word of Jinja can be a macro, or a name of dbt's context that may vary."""
        return word.lstrip(_IN_A_STRING) in self.known or word.partition(".")[0] in _CONTEXT

    def _reach(self, words: frozenset[str]) -> _Reach:
        waiting = sorted(words)
        seen = set(words)
        texts: list[str] = []
        reasons: list[str] = []
        while waiting:
            word = waiting.pop()
            before, now = (side.get(word.lstrip(_IN_A_STRING), {}) for side in self.macros)
            if before.keys() != now.keys():
                reasons.append(f"macro {word} is not on both sides")
            for unique_id, macro in now.items():
                other = before.get(unique_id, macro)
                if (macro.macro_sql, macro.depends_on) != (other.macro_sql, other.depends_on):
                    reasons.append(f"macro {macro.name} changed")
                if unique_id in _ANSWERED_AS_ON_BASE:
                    continue
                texts.append(macro.macro_sql)
                further = [w for w in _macro_words(macro.macro_sql) - seen if self.tells(w)]
                seen.update(further)
                waiting += sorted(further)
        reasons += filter(None, map(self.condition, sorted(seen)))
        return _Reach(frozenset(seen), texts, reasons[0] if reasons else None)

    def condition(self, word: str) -> str | None:
        """Why a name of dbt's context may stand for something else than on base."""
        if word.startswith("adapter.") and word not in _PURE:
            return f"it looks at the warehouse while it compiles (`{word}`)"
        if word.partition(".")[0] in _NEVER and word not in _PURE:
            return f"it asks dbt for `{word}` while it compiles"
        if (
            (word in _VARIABLES and not self.conditions.variables)
            or (word in _ENVIRONMENT and not self.conditions.environment)
            or (word in _TARGET and not self.conditions.target)
            or (word in _COMMAND and not self.conditions.command)
        ):
            return f"it reads `{word}`, of which the artifacts do not say the value"
        return None

    # -- names of relations -----------------------------------------------------------------------

    def renamed(self, unique_id: str, sql: str) -> _Text | str:
        """Base's SQL with head's names of relations, or the reason why they cannot be mapped."""
        names: dict[str, str] = {}
        for related in self.related(unique_id):
            before = self.base.nodes[related].relation_name
            now = self.head.nodes[related].relation_name
            if before and now and names.setdefault(before, now) != now:
                return f"{before} is two relations on head"
        names = {before: now for before, now in names.items() if before != now}
        if not names:
            return _Text(sql)
        node = self.head.nodes[unique_id]
        reach = self.reach(node)
        if parts := reach.words & _PARTS_OF_NAMES:
            return f"it may use a part of a relation's name (`{min(parts)}`)"
        written = "\n".join((node.raw_code, repr(node.test_metadata), *reach.texts))
        for name in names:
            if name in written:
                return f"{name} is written into its code"
        return _Text(rename(sql, names))

    def related(self, unique_id: str) -> Iterator[str]:
        """The node and all relations its text may name, through what is ephemeral."""
        waiting, seen = [unique_id], {unique_id}
        while waiting:
            current = waiting.pop()
            yield current
            if current == unique_id or self.head.nodes[current].is_ephemeral:
                for parent in self.head.nodes[current].depends_on.nodes:
                    if parent not in seen:
                        seen.add(parent)
                        waiting.append(parent)


@dataclass(frozen=True)
class _Reach:
    """What Jinja reaches: words, texts of macros, and what of it is not proved the same."""

    words: frozenset[str]
    texts: list[str]
    reason: str | None


_CONTEXT: Final = _NEVER | _VARIABLES | _ENVIRONMENT | _TARGET | _COMMAND | _PARTS_OF_NAMES
_IN_A_STRING: Final = "'"
"""Stands before a word that was found in a string, where it can only be the name of a macro."""


def _by_word(project: Project) -> dict[str, dict[str, Macro]]:
    """Macros by every word that may call them: ``spark__star`` is what ``star`` dispatches to."""
    found: dict[str, dict[str, Macro]] = {}
    for unique_id, macro in project.macros.items():
        found.setdefault(macro.name, {})[unique_id] = macro
        if dispatched := macro.name.partition("__")[2]:
            found.setdefault(dispatched, {})[unique_id] = macro
    return found


def _other_dbt(base: Project, head: Project) -> str | None:
    """Why nothing can be taken over: two dbts may compile one text to two."""
    for what, before, now in (
        ("dbt", base.metadata.dbt_version, head.metadata.dbt_version),
        ("adapter", base.metadata.adapter_type, head.metadata.adapter_type),
        ("project", base.metadata.project_name, head.metadata.project_name),
    ):
        if before != now:
            return f"another {what} compiled base: {before}, not {now}"
    return None


@cache
def _macro_words(text: str) -> frozenset[str]:
    """The words of a macro's text that are not its own parameters."""
    signature = _SIGNATURE.search(text)
    return _jinja_words(text).difference(_PARAMETER.findall(signature[1]) if signature else ())


@cache
def _jinja_words(text: str) -> frozenset[str]:
    """The words in the ``{{ }}`` and ``{% %}`` of a text, names being set left out.

    What is an attribute of ``adapter`` or ``builtins`` stands with it.

    Example:
        >>> sorted(_jinja_words("select a {# b #} {%- set c = {'d': {'e': adapter.type()}} %}"))
        ["'d", "'e", 'adapter.type', 'set', 'type']
    """
    words: set[str] = set()
    for inside in tags(text):
        for token in _TOKEN.finditer(inside):
            if token["text"]:
                words.update(_IN_A_STRING + word for word in _WORD.findall(token["text"]))
            elif not token["set"]:
                names = _WORD.findall(token["name"])
                if names[0] in ("adapter", "builtins") and len(names) > 1:
                    names[0] = f"{names[0]}.{names[1]}"
                words.update(names)
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
