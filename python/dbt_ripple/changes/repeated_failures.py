"""The models that failed in base's build and, as everything that decides it is unchanged, fail on head again.

A build may fail by the data (a cast, a lock, a quota), and then head's may pass. Here are only failures
that what stands in the project decides alone:

* *By its config.* A macro of the materialization refuses it (``partition_by must be a list``). dbt tells
  the calls that lead there. The materialization calls the first of them whatever it finds in the
  warehouse, and on the way from there to the error nothing is read but literals and the node's
  ``config``, which is the same on both sides, as are the texts of all those macros.
* *By its text.* The engine cannot parse it, or knows no function of that name; the text is the same, as is all
  that dbt puts around it, no hook runs beside it, and nothing of the project makes functions.

All else may be mended by what changed around the node: it is not in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jinja2 import nodes

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.macros import INTERNAL, Macros
from dbt_ripple.jinja.facts import facts_of, facts_of_tree
from dbt_ripple.jinja.text import tree_of

_IN_MACRO: Final = re.compile(r"^\s*> (?:in|called by) macro (\w+) \((.*)\)\s*$", re.M)
_IN_MODEL: Final = re.compile(r"^\s*> called by (?:model|snapshot) (\w+) \(", re.M)
_COMPILATION: Final = "Compilation Error"
_PARSER: Final = re.compile(r"\bParser Error: ")
_NO_FUNCTION: Final = re.compile(
    r"\bCatalog Error: (?:Scalar |Table |Aggregate )?Function with name \"?(\w+)\"? does not exist!"
)
_MAKES: Final = re.compile(
    r"\bcreate\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:function|macro)\b|\b(?:load|install|attach)\s+\w",
    re.I,
)
_OF_ENGINE: Final = frozenset({"duckdb"})
"""Adapters whose engine's words are known to mean what `_PARSER` and `_NO_FUNCTION` say."""

_ONLY_CONFIG: Final = frozenset(
    [("config", "get"), ("config", "require"), ("exceptions", "raise_compiler_error")]
)
_SAME_EVERYWHERE: Final = frozenset({"loop", "namespace", "range", "return"})
"""What in Jinja is the same wherever it is rendered."""


def fail_again(base: Project, head: Project) -> dict[str, str]:
    """The models of head that certainly cannot be built, because base's build says so of the same.

    Returns:
        By unique_id, the message of base's build, in one line.
    """
    if (base.metadata.dbt_version, base.metadata.adapter_type) != (
        head.metadata.dbt_version,
        head.metadata.adapter_type,
    ):
        return {}
    invocation = base.metadata.invocation_id
    failed = {
        result.unique_id: result.message
        for result in base.run_results
        if result.status == "error"
        and result.message
        and not (invocation and result.invocation_id and result.invocation_id != invocation)
    }
    errors = {}
    for unique_id, message in failed.items():
        then, now = base.nodes.get(unique_id), head.nodes.get(unique_id)
        if then is None or now is None or now.resource_type not in ("model", "snapshot"):
            continue
        if message.startswith(_COMPILATION):
            again = _config_is_refused(base, head, then, now, message)
        else:
            again = _text_is_refused(base, head, then, now, message)
        if again:
            errors[unique_id] = _in_short(message)
    return errors


def _in_short(message: str) -> str:
    """The line of an error that says what is wrong."""
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in lines[1:] if line and not line.startswith(">")), lines[0])


# -- by its text ----------------------------------------------------------------------------------


def _text_is_refused(base: Project, head: Project, then: Node, now: Node, message: str) -> bool:
    if base.metadata.adapter_type not in _OF_ENGINE or not then.compiled_code:
        return False
    if then.materialized not in ("table", "view") or then.config != now.config:
        return False  # the engine may have refused what stands around the text
    if (
        hooks_of(then)
        or hooks_of(now)
        or any(Macros(p).run_by(then.materialized) for p in (base, head))
    ):
        return False
    if rename(then.compiled_code, other_names(base, head)) != now.compiled_code:
        return False
    if _PARSER.search(message):
        return True
    return (
        _NO_FUNCTION.search(message) is not None
        and all(node.resource_type != "function" for node in head.nodes.values())
        and not any(_MAKES.search(text) for text in _texts(head))
    )


def _texts(project: Project) -> Iterator[str]:
    """The source texts of the user's that may be run."""
    for macro in project.macros.values():
        if macro.package_name not in INTERNAL:
            yield macro.macro_sql
    for node in project.nodes.values():
        yield node.raw_code
        for key in ("pre-hook", "post-hook", "sql_header"):
            if value := node.config.get(key):
                yield str(value)


# -- by its config --------------------------------------------------------------------------------


def _config_is_refused(base: Project, head: Project, then: Node, now: Node, message: str) -> bool:
    """Whether the calls that dbt tells lead to the error by the config alone."""
    if then.config != now.config or then.language != now.language:
        return False
    called_by = _IN_MODEL.search(message)
    calls = [_only_one(base, head, *call) for call in _IN_MACRO.findall(message)]
    if called_by is None or called_by[1] != now.name or len(calls) < 2:
        return False
    macros = [macro for macro in calls if macro is not None]
    *inner, materialization = macros
    if len(macros) < len(calls) or any(
        macro.package_name not in INTERNAL
        for side in (base, head)
        for macro in side.macros.values()
        if macro.name.startswith(f"materialization_{now.materialized}_")
    ):
        return False
    if not materialization.name.startswith(f"materialization_{now.materialized}_"):
        return False
    inwards = inner[::-1]
    known = _handed_over(materialization.macro_sql, inwards[0])
    callees = [*(macro.name for macro in inwards[1:]), None]
    for macro, callee in zip(inwards, callees, strict=True):
        if known is None or not _reads_only_config(macro.macro_sql, callee, known):
            return False
        known = _ANY
    return True


def _only_one(base: Project, head: Project, name: str, path: str) -> Macro | None:
    """The macro that a name and a file mean, where it is the only one of its name on both sides."""
    before, now = ([m for m in side.macros.values() if m.name == name] for side in (base, head))
    if len(before) != 1 or len(now) != 1 or before[0].macro_sql != now[0].macro_sql:
        return None
    return now[0] if now[0].original_file_path.replace("\\", "/") == path else None


def _handed_over(text: str, callee: Macro) -> frozenset[str] | None:
    """The parameters of a macro that a materialization gives literals, whatever it finds; None where it may not call it."""
    macro = _macro(text)
    for statement in macro.body if macro is not None else ():
        names = {name.name for name in statement.find_all(nodes.Name)}
        if callee.name in names:
            calls = [c for c in statement.find_all(nodes.Call) if _called(c) == callee.name]
            if len(calls) != 1 or not _is_the_call(statement, calls[0]):
                return None
            parameters = facts_of(callee.macro_sql).parameters
            given = dict(zip(parameters, calls[0].args, strict=False))
            given |= {keyword.key: keyword.value for keyword in calls[0].kwargs}
            return frozenset(
                p for p in parameters if isinstance(given.get(p, nodes.Const(None)), nodes.Const)
            )
        if "return" in names:
            return None  # it may end before
    return None


def _reads_only_config(text: str, callee: str | None, known: frozenset[str]) -> bool:
    """Whether all that a macro reads up to its last call of another is config, literals or known.

    Args:
        text: of the macro.
        callee: the macro that it calls; without one, to its end.
        known: its parameters whose values are; `_ANY` for all.
    """
    macro = _macro(text)
    if macro is None:
        return False
    body = macro.body
    if callee is not None:
        calls = [
            at for at, s in enumerate(body) if callee in {n.name for n in s.find_all(nodes.Name)}
        ]
        body = body[: max(calls, default=-1) + 1]
    macro = nodes.Macro(macro.name, macro.args, macro.defaults, body)
    facts = facts_of_tree(nodes.Template([macro]))
    handed = facts.parameters if known is _ANY else known
    unknown = set(facts.parameters).difference(handed)
    return bool(body) and all(
        use.name.lstrip("%") in facts.sets - unknown
        or use.name in (callee, "", *_SAME_EVERYWHERE)
        or use.path[:2] in _ONLY_CONFIG
        for use in facts.uses
    )


def _macro(text: str) -> nodes.Macro | None:
    tree = tree_of(text)
    return next(tree.find_all(nodes.Macro), None) if tree is not None else None


def _is_the_call(statement: nodes.Node, call: nodes.Call) -> bool:
    """Whether a statement is this call and nothing else, so that no branch leaves it out."""
    if isinstance(statement, nodes.Output):
        return any(part is call for part in statement.nodes)
    return isinstance(statement, nodes.Assign | nodes.ExprStmt) and statement.node is call


def _called(call: nodes.Call) -> str:
    return call.node.name if isinstance(call.node, nodes.Name) else ""


_ANY: Final = frozenset({"*"})
"""All that a macro is given, where what gives it has read config alone."""
