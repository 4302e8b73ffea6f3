"""Prints what a command answers, and what it has to say on stderr.

Answers as ``--format json`` has them are plain values (`plain`), and reasons in words with their codes.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal, NoReturn, get_args, get_origin, get_type_hints

import click
import msgspec

from dbt_ripple.errors import EXIT_CANNOT_RUN, RippleError
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.rendering import escaping, terminal
from dbt_ripple.secrets import scrub, scrubber


def warn(message: str) -> None:
    """Say something on stderr that does not stop the command; nothing with ``--quiet``.

    Under `terminal.heard_by` it is kept there in place of that.
    """
    notes = terminal.heard()
    if notes is not None:
        notes[escaping.line(scrub(message))] = None
    elif not terminal.is_quiet():
        complain(message)


def detail(message: str) -> None:
    """Say on stderr how an answer came about; only with ``--verbose``."""
    if terminal.is_verbose() and terminal.heard() is None:
        warn(message)


_DETAILS: Final = frozenset(
    {
        *(Code.VARS_UNSEEN, Code.ENVIRONMENT_UNSEEN, Code.MACRO_ORDER_UNSEEN, Code.FILES_UNSEEN),
        *(Code.SOURCES_ELSEWHERE, Code.NO_CATALOG),
        *(Code.TAKEN_FROM_BASE, Code.TAKEN_FROM_HEAD),
    }
)
"""What is the same at every run of a project: who has read it once can do nothing more about it."""


def say(notes: Iterable[Reason]) -> None:
    """Say on stderr what an answer had to assume; what is so at every run only with ``--verbose``."""
    for note in notes:
        (detail if note.code in _DETAILS else warn)(note.message)


def complain(message: str) -> None:
    """Say on stderr what went wrong, in one line, whatever names are in it."""
    terminal.clear()
    with contextlib.suppress(OSError):  # nobody can be told that stderr is full or closed
        click.echo(escaping.line(scrub(f"dbt-ripple: {message}")), err=True)


Fit = Literal["wrap", "cut"] | None
"""How a line is made to fit into the width of a terminal."""


def answer(lines: Iterable[str], *, fit: Fit = None, commands: bool = False) -> None:
    """Print the answer on stdout.

    A reader that has gone (``| head``) ends the command without a word, but not as an answer would:
    what it did not read may be "BLOCKED".

    Each line stays one line, whatever names are in it: what is not seen is shown, and a newline is
    not seen. Only styles of `escaping.styled` are sent, and only to a terminal. Characters that the
    encoding of stdout lacks become ASCII.

    Args:
        lines: without newlines; text is one line.
        fit: how a line is made to fit into the width of a terminal. Anything else gets all of it.
        commands: whether lines may be commands to a workflow of GitHub.

    Raises:
        RippleError: where stdout cannot be written to.
    """
    if sys.stdout is None:
        raise RippleError("cannot write the answer: stdout is closed")
    colours, width = terminal.has_colours(sys.stdout), terminal.width_of(sys.stdout)
    printed: list[str] = []
    for answer_line in map(scrubber(), [lines] if isinstance(lines, str) else lines):
        if width is None or fit is None:
            printed.append(escaping.line(answer_line, colours=colours, commands=commands))
        elif fit == "wrap":
            printed += escaping.wrapped(answer_line, width, colours=colours)
        else:
            printed.append(escaping.cut(answer_line, width, colours=colours))
    text = "\n".join(printed)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII_GUIDES).encode(encoding, "replace").decode(encoding)
    terminal.clear()
    try:
        click.echo(text)
        sys.stdout.flush()
    except OSError as error:
        stop_printing(error)


def stop_printing(error: OSError) -> NoReturn:
    """End the command because what it says could not be written.

    Raises:
        SystemExit: without a word, where its reader has gone.
        RippleError: otherwise.
    """
    # Python flushes stdout once more when it ends, which would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        sys.exit(EXIT_CANNOT_RUN)
    raise RippleError(f"cannot write the answer: {error.strerror}") from error


_ASCII_GUIDES = str.maketrans({"└": "`", "├": "|", "│": "|", "─": "-", "·": "-", "…": "~"})


SCHEMA_VERSION = 1
"""Of what ``--format json`` prints: raised where a field goes, or gets another name or meaning."""


def document(value: Any) -> dict[str, Any]:
    """What a command says, as plain values (`rendering.json_documents` has the types)."""
    return {"schema_version": SCHEMA_VERSION, **plain(value)}


def as_document(value: Any) -> list[str]:
    """The same, as ``--format json`` prints it."""
    return as_json(document(value))


def as_json(value: Any) -> list[str]:
    """Indented JSON, as every ``--format json`` prints it, line by line."""
    return escaping.json_text(value).split("\n")


def percent(share: float) -> str:
    """A share from 0 to 1 in whole percent, rounded down: what is not all of it is never called 100%.

    Example:
        >>> percent(0.999), percent(0.29), percent(1.0)
        ('99%', '29%', '100%')
    """
    return f"{int(share * 100 + 1e-9)}%"


def count(number: int, noun: str) -> str:
    """A number with its noun.

    Example:
        >>> count(1, "model"), count(2000, "model"), count(2, "analysis")
        ('1 model', '2,000 models', '2 analyses')
    """
    plural = f"{noun[:-2]}es" if noun.endswith("is") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """What a command says, as JSON has it.

    A field that is a reason becomes its sentence; its code and arguments stand beside it, in
    ``reason_code`` and ``reason_arguments`` where it is called ``reason``. A list of reasons becomes
    one of sentences, and ``notes_coded`` has the values of ``notes``.
    """
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, Reason):
        arguments = {name: plain(argument) for name, argument in value.arguments.items()}
        return {"code": str(value.code), "arguments": arguments, "message": value.message}
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return msgspec.to_builtins(value)


def _plain_struct(value: msgspec.Struct) -> dict[str, Any]:
    type_ = type(value)
    reasons = of_reasons(type_)
    defaults = _omitted(type_)
    fields: dict[str, Any] = {}
    for field, name in zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True):
        item = getattr(value, field)
        if item is msgspec.UNSET or (field in defaults and item == defaults[field]):
            continue
        if reasons.get(field) == "one":
            fields[name] = item.message if item is not None else None
            fields[f"{name}_code"] = str(item.code) if item is not None else None
            fields[f"{name}_arguments"] = plain(item)["arguments"] if item is not None else None
        elif reasons.get(field) == "several":
            fields[name] = [reason.message for reason in item]
            fields[f"{name}_coded"] = plain(item)
        else:
            fields[name] = plain(item)
    return fields


@cache
def _omitted(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields that are left out where they have these values."""
    if not type_.__struct_config__.omit_defaults:
        return {}
    defaults = type_.__struct_defaults__
    late = type_.__struct_fields__[len(type_.__struct_fields__) - len(defaults) :]
    return dict(zip(late, defaults, strict=True))


@cache
def of_reasons(type_: type[msgspec.Struct]) -> dict[str, Literal["one", "several"]]:
    """Which fields of a type are a reason, and which are lists of reasons."""
    fields: dict[str, Literal["one", "several"]] = {}
    for field, annotation in get_type_hints(type_).items():
        if annotation is Reason or Reason in get_args(annotation):
            fields[field] = "several" if get_origin(annotation) is list else "one"
    return fields
