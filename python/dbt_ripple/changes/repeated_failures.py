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
from collections.abc import Iterable, Iterator
from typing import Final

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.jinja import Tag, tagged
from dbt_ripple.graph.macros import INTERNAL, Macros
from dbt_ripple.jinja.calls import KnownValues, literals_given, parameters_of

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

_STATEMENT: Final = re.compile(r"\s*(\w+)\b(.*)", re.S)
_CALLS: Final = re.compile(r"\s*(?:set\s+\w+\s*=\s*|do\s+)?(\w+)\([^()]*\)\s*", re.S)
"""A tag that is one call and nothing else."""
_OPENS: Final = frozenset({"if", "for", "call", "filter", "macro"})
_STRING: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_NAME: Final = re.compile(r"(?<![\w.])(?<!\.\s)([A-Za-z_]\w*)(?P<set>\s*=(?!=))?")
_AFTER_A_BAR: Final = re.compile(r"\|\s*\w+")
_AFTER_IS: Final = re.compile(r"\bis\s+(?:not\s+)?\w+")
_CONFIG: Final = re.compile(r"\bconfig\s*\.\s*(?:get|require)\s*\(")
_RAISES: Final = re.compile(r"\bexceptions\s*\.\s*raise_compiler_error\s*\(")
_WORDS: Final = frozenset(
    """
    and do elif else endfor endif endmacro endset false for if in is loop macro namespace none not or
    range return set true False None True
    """.split()
)
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
    parameters = _handed_over_always(materialization.macro_sql, inwards[0])
    callees = [*(macro.name for macro in inwards[1:]), None]
    for macro, callee in zip(inwards, callees, strict=True):
        if parameters is None or not _reads_only_config(macro.macro_sql, callee, parameters):
            return False
        parameters = ALL
    return True


ALL: Final[KnownValues] = {"*": ""}
"""What is handed over by what reads the config only."""


def _only_one(base: Project, head: Project, name: str, path: str) -> Macro | None:
    """The macro that a name and a file mean, where it is the only one of its name on both sides."""
    before, now = ([m for m in side.macros.values() if m.name == name] for side in (base, head))
    if len(before) != 1 or len(now) != 1 or before[0].macro_sql != now[0].macro_sql:
        return None
    return now[0] if now[0].original_file_path.replace("\\", "/") == path else None


def _handed_over_always(text: str, callee: Macro) -> KnownValues | None:
    """What a materialization hands to a macro that it calls whatever it finds; None where it may not."""
    handed_over: KnownValues | None = None
    open_ = 0
    for tag in _inside(text):
        statement = _STATEMENT.match(tag.inside) if tag.kind == "{%" else None
        word = statement[1] if statement is not None else ""
        plain = _STRING.sub("''", tag.inside)
        if word in _OPENS or (word == "set" and "=" not in plain):
            open_ += 1
        elif word.startswith("end"):
            open_ -= 1
        if handed_over is None and re.search(r"\breturn\b", plain):
            return None  # it may end before
        if re.search(rf"\b{callee.name}\b", plain) is None:
            continue
        call = _CALLS.fullmatch(tag.inside)
        if open_ or call is None or call[1] != callee.name:
            return None
        handed = literals_given(callee.macro_sql, tag.inside[call.start(1) : call.end()])
        if handed_over is not None and handed != handed_over:
            return None
        handed_over = handed
    return handed_over


def _reads_only_config(text: str, callee: str | None, known_parameters: KnownValues) -> bool:
    """Whether all that a macro reads up to its last call of another is known, or config.

    Args:
        text: of the macro.
        callee: the macro that it calls; without one, to its end.
        known_parameters: its parameters whose values are; `ALL` for all.
    """
    declared = parameters_of(text)
    if declared is None:
        return False
    parameters = set(declared)
    read = list(_inside(text))
    if callee is not None:
        places = [i for i, tag in enumerate(read) if re.search(rf"\b{callee}\b", tag.inside)]
        if not places:
            return False
        read = read[: places[-1] + 1]
    allowed = {*_WORDS, *(parameters if known_parameters is ALL else known_parameters)}
    if callee is not None:
        allowed.add(callee)
    allowed |= _set_in(read) - parameters
    return all(_words_of(tag) <= allowed for tag in read)


def _inside(text: str) -> Iterator[Tag]:
    """The tags of a macro without those that it stands in."""
    for tag in tagged(text):
        if not re.match(r"\s*(?:end)?(?:macro|materialization)\b", tag.inside):
            yield tag


def _set_in(tags: Iterable[Tag]) -> set[str]:
    """The names that a text sets itself."""
    names: set[str] = set()
    for tag in tags:
        statement = re.match(r"\s*(?:set|for)\s+([\w\s,]+?)\s*(?:=|\bin\b|$)", tag.inside)
        if tag.kind == "{%" and statement is not None:
            names.update(re.findall(r"\w+", statement[1]))
    return names


def _words_of(tag: Tag) -> set[str]:
    """The names that a tag reads, without attributes, filters, tests and keywords of calls."""
    plain = _STRING.sub("''", tag.inside)
    for harmless in (_CONFIG, _RAISES):
        plain = harmless.sub("(", plain)
    plain = _AFTER_IS.sub(" ", _AFTER_A_BAR.sub(" ", plain))
    return {match[1] for match in _NAME.finditer(plain) if not match["set"]}
