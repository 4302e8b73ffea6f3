"""The rule `unjudged_code`: edits of which the gate does not see all that they do.

It judges what is compiled here. Code that compiles to something else for another target, under other
variables or at another time, and reads of relations that a text names when the query runs, are not in
there: they are said, where they are new.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Final

from dbt_ripple.artifacts import Node, Project, is_own
from dbt_ripple.changes import Comparison
from dbt_ripple.flow.functions import MASKING_NAMES
from dbt_ripple.governance.contracts import Breach
from dbt_ripple.graph.column_edges import edges_into
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.linking.sources import DATASET_PREFIX
from dbt_ripple.graph.macros import INTERNAL, NAMING
from dbt_ripple.jinja.decisions import decisions
from dbt_ripple.jinja.statements import statements_run, written
from dbt_ripple.reasons import Code, Reason

_CODE: Final = frozenset({"model", "operation", "seed", "snapshot"})
_HOOKS: Final = ("pre-hook", "post-hook", "pre_hook", "post_hook", "sql_header")
_WORDS: Final = re.compile(r"\w+")
_ACTS: Final = re.compile(
    r"\b(?:call|copy|create|exec|execute|export|insert|load|merge|put|unload|update)\b", re.I
)
"""Words of statements that may take data to where no node is."""
_INTO_ITSELF: Final = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)(?:\s+table)?|merge\s+into|update)\s+\{\{-?\s*this\s*-?\}\}",
    re.I,
)
"""What is written to the node itself, which its own fingerprints tell."""
_READS: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*\(?\s*(?:desc|describe|explain|from|select|show|values|with)\b",
    re.I | re.S,
)
_COMMENT: Final = re.compile(r"'(?:[^']|'')*'|(--[^\n'\"`]*(?=\n|\Z)|/\*[^'\"`]*?\*/)", re.S)
"""A comment with a quote in it may be none: `select 1 as "/*"; drop table t; select 1 as "*/"`."""
_LITERAL: Final = re.compile(r"'[^'\"`\\]*'")
_PREFIX: Final = re.compile(r"[^\W_]+__")
_BY_TEXT: Final = re.compile(
    r"""\b(query_table | query | identifier | dblink\w* | external_query | openquery | openrowset
    | (?:query|table|cursor)_to_xml\w* | (?:mysql|postgres)_query)\s*\( | \b(execute\s+immediate)\b""",
    re.I | re.X,
)
"""What reads or runs what a text names when the query runs."""
_BY_TEXT_IN_PYTHON: Final = re.compile(
    r"\b(?:session|spark|con|conn|connection|duckdb)\.(?:table|sql|query|execute|read)\b|\bread_sql\w*\b"
)


def unjudged_breaches(comparison: Comparison) -> Iterator[Breach]:
    """What is new, and not judged in full."""
    base, head = comparison.base, comparison.head
    own = {head.name, *head.local_packages}
    before = _Actions(base, own, comparison.base_context.config_fingerprints)
    after = _Actions(head, own, comparison.head_context.config_fingerprints)
    edited = set()
    for unique_id, node in head.nodes.items():
        if node.resource_type not in _CODE or not is_own(node, head):
            continue
        then = base.nodes.get(unique_id)
        if then is None or node.compiled_code != then.compiled_code:
            edited.add(unique_id)
        for reason in (
            _decided(_texts(node), _texts(then) if then is not None else []),
            Code.HOOK_ACTS()
            if after.of_hooks(node) - (before.of_hooks(then) if then is not None else set())
            else None,
            Code.JINJA_ACTS()
            if after.of_code(node) - (before.of_code(then) if then is not None else set())
            else None,
        ):
            if reason is not None:
                yield Breach("unjudged_code", unique_id, None, reason)
        new = _by_text(node) - (_by_text(then) if then is not None else set())
        if new:
            reason = Code.READS_BY_TEXT(functions=sorted(new))
            yield Breach("unjudged_code", unique_id, None, reason)
    yield from _undeclared(comparison, edited)
    yield from _macros(base, head, own)
    for unique_id, node in head.nodes.items():
        if (
            node.resource_type == "function"
            and node.name.lower() in MASKING_NAMES
            and is_own(node, head)
            and ((then := base.nodes.get(unique_id)) is None or then.raw_code != node.raw_code)
        ):
            yield Breach("unjudged_code", unique_id, None, Code.CALLED_LIKE_A_MASK())
    disabled = {*head.disabled} - {*base.disabled} - base.nodes.keys()
    for unique_id in sorted(disabled):
        parts = unique_id.split(".")
        if parts[0] in _CODE and parts[1:2] and parts[1] in own:
            yield Breach("unjudged_code", unique_id, None, Code.DISABLED_HERE())


def _decided(texts: list[str], before: list[str]) -> Reason | None:
    """What some texts newly decide by the context; None for nothing."""
    if texts == before:
        return None
    known = {decision for text in before for decision, _ in decisions(text)}
    names: set[str] = set()
    for text in texts:
        names.update(*(of for decision, of in decisions(text) if decision not in known))
    return Code.DECIDED_BY_CONTEXT(names=sorted(names)) if names else None


def _undeclared(comparison: Comparison, edited: set[str]) -> Iterator[Breach]:
    """Relations that edited queries newly name, and that no node is."""
    now = _datasets(comparison.head_analysis, edited)
    before = _datasets(comparison.base_analysis, now.keys()) if now else {}
    for unique_id, names in now.items():
        if new := names - before.get(unique_id, set()):
            reason = Code.READS_UNDECLARED(names=sorted(new))
            yield Breach("unjudged_code", unique_id, None, reason)


def _datasets(analysis: Analysis, unique_ids: Collection[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for parent, _, child, *_ in edges_into(analysis.edges, unique_ids):
        if parent.startswith(DATASET_PREFIX):
            found.setdefault(child, set()).add(parent.removeprefix(DATASET_PREFIX))
    return found


def _macros(base: Project, head: Project, own: set[str]) -> Iterator[Breach]:
    """What macros of the repository do that is new."""
    of_dbt = {macro.name for macro in head.macros.values() if macro.package_name in INTERNAL}
    for unique_id, macro in head.macros.items():
        then = base.macros.get(unique_id)
        if macro.package_name not in own or (then and then.macro_sql == macro.macro_sql):
            continue
        name = macro.name
        if NAMING.search(name):
            yield Breach("unjudged_code", None, None, Code.NAMES_RELATIONS(name=name))
        elif name.startswith("materialization_") or (
            not name.startswith("test_") and not of_dbt.isdisjoint((name, *_plain(name)))
        ):
            yield Breach("unjudged_code", None, None, Code.REPLACES_DBT(name=name))
        because = _decided([macro.macro_sql], [then.macro_sql] if then is not None else [])
        if because is not None:
            reason = Code.MACRO_OF_OTHER_CONTEXTS(name=name, because=because)
            yield Breach("unjudged_code", None, None, reason)


def _plain(name: str) -> Iterator[str]:
    """What a macro of one adapter is dispatched for: ``default__x`` for ``x``, and for other adapters' x."""
    plain = _PREFIX.sub("", name, count=1)
    if plain != name:
        yield from (plain, f"default__{plain}")


class _Actions:
    """What the code of a project does besides what it compiles to, which may take data to where no node is.

    Args:
        project: one side.
        own: the packages of the repository; what others' macros do is not looked at.
        config_fingerprints: of the project: they tell a hook from the id and the time of a run in it.
    """

    def __init__(
        self, project: Project, own: Collection[str], config_fingerprints: ConfigFingerprints
    ) -> None:
        self._text_of_hook = config_fingerprints.text_of_hook
        self._texts = {
            macro.name: macro.macro_sql
            for macro in project.macros.values()
            if macro.package_name in own
        }

    def of_hooks(self, node: Node) -> set[str]:
        """The texts of its hooks, and of the macros these reach, that act."""
        hooks = _hooks(node)
        texts = [(hook, self._text_of_hook(hook, node)) for hook in hooks]
        texts += [(self._texts[n], self._texts[n]) for n in self._reached(hooks)]
        return {
            " ".join(shown.split())
            for text, shown in texts
            if _acts(written(text)) or any(map(_is_no_read, statements_run(text)))
        }

    def of_code(self, node: Node) -> set[str]:
        """The statements that act of what its Jinja, and the macros this reaches, run while it is compiled."""
        if node.is_python or node.resource_type == "operation":
            return set()
        acting = {
            statement for statement in statements_run(node.raw_code) if _is_no_read(statement)
        }
        if self._acting:
            acting.update(*(self._acting.get(n, ()) for n in self._reached([node.raw_code])))
        return acting

    @cached_property
    def _acting(self) -> dict[str, set[str]]:
        found = {
            name: {statement for statement in statements_run(text) if _is_no_read(statement)}
            for name, text in self._texts.items()
        }
        return {name: statements for name, statements in found.items() if statements}

    def _reached(self, texts: list[str]) -> set[str]:
        """The macros whose names stand in some texts, and in theirs."""
        reached: set[str] = set()
        stack = [*texts]
        while stack:
            words = set(_WORDS.findall(stack.pop())) & self._texts.keys() - reached
            reached |= words
            stack += map(self._texts.__getitem__, words)
        return reached


def _hooks(node: Node) -> list[str]:
    """The texts of its hooks, and of what it is where it is one of a run."""
    texts = [node.raw_code] if node.resource_type == "operation" else []
    for key in _HOOKS:
        hooks = node.config.get(key)
        for hook in hooks if isinstance(hooks, list) else [hooks]:
            text = hook.get("sql") if isinstance(hook, dict) else hook
            texts += [text] if isinstance(text, str) else []
    return texts


def _acts(text: str) -> bool:
    """Whether a statement may take data to where no node is, by its words."""
    code = _COMMENT.sub(lambda match: " " if match[1] else match[0], text)
    return _ACTS.search(_INTO_ITSELF.sub(" ", code)) is not None


def _is_no_read(statement: str) -> bool:
    """Whether a statement of Jinja is not known to read only."""
    return _READS.match(statement) is None or _acts(statement)


def _texts(node: Node) -> list[str]:
    """What Jinja is rendered of a node: its code, its hooks and its config."""
    texts = [] if node.is_python else [node.raw_code]
    return (
        texts
        + _hooks(node)
        + [str(value) for value in node.unrendered_config.values() if "{" in str(value)]
    )


def _by_text(node: Node) -> set[str]:
    """What of a node reads relations by texts."""
    if node.is_python:
        return {match[0] for match in _BY_TEXT_IN_PYTHON.finditer(node.raw_code)}
    code = node.compiled_code or node.raw_code
    code = _LITERAL.sub("''", _COMMENT.sub(lambda match: " " if match[1] else match[0], code))
    return {" ".join((match[1] or match[2]).lower().split()) for match in _BY_TEXT.finditer(code)}
