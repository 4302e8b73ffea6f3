"""The rule `unjudged_code`: edits of which the gate does not see all that they do.

It judges what is compiled here. Code that compiles to something else for another target, under other
variables or at another time, and reads of relations that a text names when the query runs, are not in
there: they are said, where they are new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from jinja2 import nodes

from dbt_ripple.artifacts import Node, Project, is_own
from dbt_ripple.changes import Comparison
from dbt_ripple.governance.contracts import Breach
from dbt_ripple.graph.config_fingerprints import NAMING
from dbt_ripple.jinja.text import names_in, tree_of
from dbt_ripple.reasons import Code

_CONTEXT: Final = frozenset(
    "env_var flags invocation_args_dict invocation_id modules run_started_at target var".split()
)
"""Names of dbt's context that may be something else in production than here."""
_PRINTED: Final = frozenset({"target", "var"})
"""Of these it is usual to print the value: a schema, a date."""
_CODE: Final = frozenset({"model", "operation", "seed", "snapshot"})
_HOOKS: Final = ("pre-hook", "post-hook", "pre_hook", "post_hook")
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
_COMMENT: Final = re.compile(r"'(?:[^']|'')*'|(--[^\n]*|/\*.*?\*/)", re.S)
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
    for unique_id, node in head.nodes.items():
        if node.resource_type not in _CODE or not is_own(node, head):
            continue
        then = base.nodes.get(unique_id)
        names: set[str] = set()
        texts, before = _texts(node), _texts(then) if then is not None else []
        if texts != before:
            known = {decision for text in before for decision, _ in _decisions(text)}
            for text in texts:
                for decision, of in _decisions(text):
                    if decision not in known:
                        names |= of
        if names:
            reason = Code.DECIDED_BY_CONTEXT(names=sorted(names))
            yield Breach("unjudged_code", unique_id, None, reason)
        acting = [hook for hook in _hooks(node) if _acts(hook, head)]
        if any(hook not in (_hooks(then) if then is not None else ()) for hook in acting):
            yield Breach("unjudged_code", unique_id, None, Code.HOOK_ACTS())
        new = _by_text(node) - (_by_text(then) if then is not None else set())
        if new:
            reason = Code.READS_BY_TEXT(functions=sorted(new))
            yield Breach("unjudged_code", unique_id, None, reason)
    for unique_id, macro in head.macros.items():
        if macro.package_name not in own:
            continue
        earlier = base.macros.get(unique_id)
        if earlier is not None and earlier.macro_sql == macro.macro_sql:
            continue
        if NAMING.search(macro.name):
            yield Breach("unjudged_code", None, None, Code.NAMES_RELATIONS(name=macro.name))
        known = {d for d, _ in _decisions(earlier.macro_sql)} if earlier is not None else set()
        names = set().union(*(of for d, of in _decisions(macro.macro_sql) if d not in known))
        if names:
            because = Code.DECIDED_BY_CONTEXT(names=sorted(names))
            reason = Code.MACRO_OF_OTHER_CONTEXTS(name=macro.name, because=because)
            yield Breach("unjudged_code", None, None, reason)
    disabled = {*head.disabled} - {*base.disabled} - base.nodes.keys()
    for unique_id in sorted(disabled):
        parts = unique_id.split(".")
        if parts[0] in _CODE and parts[1:2] and parts[1] in own:
            yield Breach("unjudged_code", unique_id, None, Code.DISABLED_HERE())


def _hooks(node: Node) -> list[str]:
    """The texts of its hooks, and of what it is where it is one of a run."""
    texts = [node.raw_code] if node.resource_type == "operation" else []
    for key in _HOOKS:
        hooks = node.config.get(key)
        for hook in hooks if isinstance(hooks, list) else [hooks]:
            text = hook.get("sql") if isinstance(hook, dict) else hook
            texts += [text] if isinstance(text, str) else []
    return texts


def _acts(hook: str, project: Project) -> bool:
    """Whether a hook may take data to where no node is, by its words or those of the project's macros."""
    texts = [hook]
    for package in (project.name, *project.local_packages):
        for name in set(_WORDS.findall(hook)):
            macro = project.macros.get(f"macro.{package}.{name}")
            texts += [macro.macro_sql] if macro is not None else []
    codes = (_COMMENT.sub(lambda match: " " if match[1] else match[0], text) for text in texts)
    return any(_ACTS.search(_INTO_ITSELF.sub(" ", code)) for code in codes)


def _texts(node: Node) -> list[str]:
    """What Jinja is rendered of a node: its code, its hooks and its config."""
    texts = [] if node.is_python else [node.raw_code]
    return (
        texts
        + _hooks(node)
        + [str(value) for value in node.unrendered_config.values() if "{" in str(value)]
    )


def _decisions(text: str) -> Iterator[tuple[str, set[str]]]:
    """What a text decides by names of the context: the code that depends on it, and those names."""
    if not any(name in text for name in _CONTEXT):
        return
    tree = tree_of(text)
    if tree is None:
        return
    seen: set[int] = set()
    for branch in tree.find_all((nodes.If, nodes.CondExpr)):
        assert isinstance(branch, (nodes.If, nodes.CondExpr))
        if of := _of_context(names_in(branch.test)):
            seen.update(map(id, names_in(branch.test)))
            yield repr(branch), of
    for output in tree.find_all(nodes.Output):
        for expression in output.nodes:
            first = _begin(expression)
            names = [
                name
                for name in names_in(expression)
                if id(name) not in seen and not (name is first and name.name in _PRINTED)
            ]
            seen.update(map(id, names_in(expression)))
            if of := _of_context(names):
                yield repr(expression), of
    # What is set by one decides wherever it is used.
    if of := _of_context(name for name in names_in(tree) if id(name) not in seen):
        yield repr(tree), of


def _of_context(names: Iterable[nodes.Name]) -> set[str]:
    return {name.name for name in names} & _CONTEXT


def _begin(expression: nodes.Node) -> nodes.Node:
    """The name that an expression of attributes and calls begins with."""
    while isinstance(expression, (nodes.Getattr, nodes.Call)):
        expression = expression.node
    return expression


def _by_text(node: Node) -> set[str]:
    """What of a node reads relations by texts."""
    if node.is_python:
        return {match[0] for match in _BY_TEXT_IN_PYTHON.finditer(node.raw_code)}
    code = _COMMENT.sub(
        lambda match: " " if match[1] else "''", node.compiled_code or node.raw_code
    )
    return {" ".join((match[1] or match[2]).lower().split()) for match in _BY_TEXT.finditer(code)}
