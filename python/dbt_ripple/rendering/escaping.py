"""Prints text from the project so that it can never act as a command, markup or escape sequence.

A name, a description, an owner or a path may contain anything: a newline, an escape sequence, a
character that reverses the line, Markdown, `@everyone`. Each format has one function here that
prints any text as plain text:

* text: :func:`line`, through which `output.answer` and `output.warn` print every line;
* JSON: :func:`json_text`, which a parser reads back unchanged;
* Markdown: :func:`code` for a name, :func:`prose` for a sentence, :func:`markup` inside HTML;
* Mermaid: :func:`mermaid`; GitHub's workflow commands: :func:`workflow_command`; SARIF:
  :func:`sarif_message`; a word of dbt's ``--select``: :func:`dbt_word`.

:func:`styled` marks colours, and only :func:`line` turns these marks into escape sequences: no
text from the project can contain one.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""What Unicode counts as printable and nobody sees."""


def shown(text: str) -> str:
    r"""Text with everything that is not seen written out, as Python writes it.

    Control and format characters (bidi, zero-width), separators but the space, lone surrogates,
    and what has no character.

    Example:
        >>> print(shown("a\nb"), shown("\x1b[31m"), shown("\u202e"), shown("straße"))
        a\nb \x1b[31m \u202e straße
    """
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(
        char if char.isprintable() and not _UNSEEN.match(char) else _escape(char) for char in text
    )


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


# --- text ------------------------------------------------------------------------------------------

_MARK: Final = f"\x1b{os.urandom(8).hex()}"
"""Begins a style: made anew in every process, so that nothing that is read can hold it."""

_COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def styled(text: str, fg: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
    """Text in a style, for :func:`line`, which drops it where there are no colours."""
    codes = [*(["1"] if bold else []), *(["2"] if dim else []), *([_COLOURS[fg]] if fg else [])]
    return f"{_MARK}{';'.join(codes)}m{text}{_MARK}0m"


def line(text: str, *, colours: bool = False, commands: bool = False) -> str:
    """One line of text as it may be printed, whatever stands in it: it stays one line.

    Args:
        text: with its styles, if any.
        colours: whether they are sent.
        commands: whether it may be one of :func:`workflow_command`.
    """
    if _plain(text):  # nearly every line, of which JSON may have a hundred thousand
        return text
    return _rendered(_pieces(text, commands), colours)


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and "##" not in text and "::" not in text


def wrapped(text: str, width: int, *, colours: bool = False) -> Iterator[str]:
    """The same in lines of at most so many columns; what follows the first is indented below it."""
    pieces = list(_pieces(text))
    plain = "".join(text for _, text in pieces)
    if width < _NARROWEST or columns(plain) <= width:
        yield _rendered(pieces, colours)
        return
    indent = min(len(plain) - len(plain.lstrip(" ")) + 4, width // 2)
    styles = [style for style, text in pieces for _ in text]
    start, room, before = 0, width, ""
    while start < len(plain):
        end = start + _fitting(plain[start:], room)
        rest = end
        if end < len(plain):
            # At a space, unless the word alone fills most of the line.
            space = plain.rfind(" ", start + 1, end + 1)
            if space > start + room // 3 and plain[start:space].strip():
                end, rest = space, space + 1
        while rest < len(plain) and plain[rest] == " ":
            rest += 1
        yield before + _rendered(_grouped(styles[start:end], plain[start:end]), colours)
        start, room, before = rest, width - indent, " " * indent


def cut(text: str, width: int, *, colours: bool = False) -> str:
    """The same in one line of at most so many columns: what does not fit ends in an ellipsis."""
    pieces = list(_pieces(text))
    plain = "".join(text for _, text in pieces)
    if width < _NARROWEST or columns(plain) <= width:
        return _rendered(pieces, colours)
    end = _fitting(plain, width - 1)
    styles = [style for style, text in pieces for _ in text]
    return _rendered(_grouped(styles[:end], plain[:end]), colours) + "…"


def shortened(name: str, width: int) -> str:
    """A name in at most so many columns: its beginning, an ellipsis and its end."""
    name = shown(name)
    if columns(name) <= width:
        return name
    begin = name[: _fitting(name, (width - 1) // 2)]
    end = name[::-1][: _fitting(name[::-1], width - 1 - columns(begin))][::-1]
    return f"{begin}…{end}"


SQL_SHOWN: Final = 200
"""Characters of an expression that text shows at most; JSON has all of it."""

_CONTEXT: Final = 40
"""Characters shown before the place where two long expressions begin to differ."""


_QUOTED_OR_SPACE: Final = re.compile(r"""'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|\s+""")


def in_one_line(sql: str) -> str:
    """SQL in one line, with one space for any between its words, and all of those within quotes."""
    return _QUOTED_OR_SPACE.sub(lambda m: " " if m[0].isspace() else m[0], sql).strip()


def one_line(sql: str, longest: int = SQL_SHOWN, start: int = 0) -> str:
    """An expression in one line, from a place on, cut where it is long.

    Example:
        >>> one_line("sum( a )", 6), one_line("sum(amount)", 6), one_line("sum(amount)", 6, 4)
        ('sum( …', 'sum(a…', '…amou…')
        >>> one_line("concat(a,  'b  c')")
        "concat(a, 'b  c')"
    """
    line = in_one_line(sql)
    line = f"…{line[start:]}" if start else line
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def two_lines(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    """What stood and what stands there, each in one line that shows where they begin to differ."""
    then, now = (None if text is None else in_one_line(text) for text in (before, after))
    if then is None or now is None:
        return then and one_line(then), now and one_line(now)
    pairs = enumerate(zip(then, now, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(then), len(now)))
    start = max(alike - _CONTEXT, 0) if max(len(then), len(now)) > SQL_SHOWN else 0
    return one_line(then, start=start), one_line(now, start=start)


_NARROWEST: Final = 20
"""Columns below which nothing is gained by wrapping."""


def columns(text: str) -> int:
    """How many columns of a terminal a text takes, about."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char) or char in "\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fitting(text: str, width: int) -> int:
    """How many characters fit into so many columns, at least one."""
    for number, char in enumerate(text):
        width -= _columns(char)
        if width < 0:
            return max(number, 1)
    return len(text)


def _pieces(text: str, commands: bool = False) -> Iterator[tuple[str, str]]:
    """A line's styles, and what is in each of them, shown."""
    first, *rest = text.split(_MARK)
    yield "", _no_command(shown(first), first=not commands)
    for piece in rest:
        style, _, content = piece.partition("m")
        yield ("" if style == "0" else style), _no_command(shown(content), first=not first.strip())


def _no_command(text: str, *, first: bool) -> str:
    """Text that a log of CI does not take for a command to it (``::add-mask::``, ``##[error]``)."""
    if "##" in text:
        text = _BRACKETED.sub(r"\1\\x5b", text)
    if first and text.lstrip().startswith("::"):
        text = text.replace("::", "\\x3a:", 1)
    return text


_BRACKETED: Final = re.compile(r"(##\w*)\[")


def _grouped(styles: list[str], text: str) -> Iterator[tuple[str, str]]:
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or styles[end] != styles[start]:
            yield styles[start], text[start:end]
            start = end


def _rendered(pieces: Iterator[tuple[str, str]] | list[tuple[str, str]], colours: bool) -> str:
    return "".join(
        f"\x1b[{style}m{text}\x1b[0m" if style and text and colours else text
        for style, text in pieces
    )


# --- JSON ------------------------------------------------------------------------------------------


def json_text(value: Any) -> str:
    r"""Indented JSON, as every ``--format json`` prints it; what is not seen is written ``\u...``."""
    import msgspec

    try:
        text: str = msgspec.json.format(msgspec.json.encode(value).decode(), indent=2)
    except UnicodeEncodeError:  # a lone surrogate, which has no UTF-8
        import json

        text = json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False)
    if "##" in text:
        text = _BRACKETED.sub(r"\1\\u005b", text)
    return _NOT_ASCII.sub(lambda match: _in_json(match[0]), text)


_NOT_ASCII: Final = re.compile(r"[^\n -~]+")


def _in_json(text: str) -> str:
    if shown(text) == text:
        return text
    return "".join(char if shown(char) == char else _utf16(char) for char in text)


def _utf16(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


# --- Markdown --------------------------------------------------------------------------------------


def code(text: str) -> str:
    """A name in Markdown, as code, in a table too; code links to nothing and calls nobody.

    Example:
        >>> code("fct_orders"), code("a|b")
        ('`fct_orders`', '<code>a&#124;b</code>')
    """
    printable = shown(text)
    if (
        printable
        and printable == printable.strip()
        and "`" not in printable
        and "|" not in printable
    ):
        return f"`{printable}`"
    return f"<code>{markup(printable)}</code>"


def markup(text: str) -> str:
    """Text inside HTML that stands in Markdown, such as ``<summary>``, where Markdown is read or not.

    GitHub makes a link of what looks like an address of mail, also of one that is spelled in entities.
    """
    escaped = "".join(
        char if char.isalnum() or not char.isascii() else f"&#{ord(char)};" for char in shown(text)
    )
    return escaped.replace("&#64;", "&#64;&#8203;")


def prose(text: str) -> str:
    r"""A text in Markdown, in a table too: no markup, no links, nobody is called.

    A zero-width space is written out (as ``&#8203;``) where GitHub would make a link of the text:
    it looks for names and numbers where the markup is long gone.

    Example:
        >>> prose("a*b of <c> by @everyone")
        'a\\*b of \\<c\\> by @&#8203;everyone'
    """
    printable = shown(text)
    start = _AT_START.match(printable)
    if start is None:
        return _IN_PROSE.sub(_escaped, printable)
    return _escaped(start) + _IN_PROSE.sub(_escaped, printable[start.end() :])


def _escaped(match: re.Match[str]) -> str:
    text, kind = match[0], match.lastgroup
    if kind == "calls":
        return f"{text}&#8203;"
    if kind == "entity":
        return f"{text[:-1]}&#{ord(text[-1])};"
    if kind == "start":
        return f"{text[:-1]}\\{text[-1]}" + ("&#8203;" if text == "#" else "")
    return "".join(f"\\{char}" for char in text)


_AT_START: Final = re.compile(r"(?P<start>\d*[-#+=.)])")
_IN_PROSE: Final = re.compile(
    r"(?P<special>[\\`*\[\]<>&~$]|#+$|(?<![^\W_])_+|_+(?![^\W_]))"
    r"|(?P<entity>\||:/(?=/)|www\.|^ | $)"
    r"|(?P<calls>@|#(?=\d)|gh-(?=\d)|:(?=[\w+-]+:))",
    re.IGNORECASE,
)


def mermaid(text: str) -> str:
    """Text that means nothing to Mermaid, inside quotes."""
    return "".join(
        char if char.isalnum() or char in " _.-()" else f"#{ord(char)};" for char in shown(text)
    )


# --- machines --------------------------------------------------------------------------------------


def workflow_command(command: str, message: str, **properties: str | int) -> str:
    """A workflow command of GitHub (``::error file=...::...``), for `answer(..., commands=True)`."""
    given = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{command} {given}::{_data(message)}"


def _data(text: str) -> str:
    return shown(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif_message(text: str) -> str:
    """A plain text message of SARIF, in which ``[text](address)`` would be a link."""
    return _LINK.sub(r"\\[", shown(text))


_LINK: Final = re.compile(r"\[(?=[^\[\]]*\]\()")


def dbt_word(name: str) -> str:
    """A part of a name as a word of dbt's ``--select``, which takes it for that name.

    ``?`` stands for one character, whatever it is, where dbt or a shell would take it for more:
    what is selected is never less.

    Example:
        >>> dbt_word("orders, daily"), dbt_word("+all"), dbt_word("a.b")
        ('orders??daily', '?all', 'a.b')
    """
    return _NO_WORD.sub("?", dbt_pattern(name))


def dbt_pattern(name: str) -> str:
    """A name for dbt's method ``fqn``: ``?`` in the place of what is not seen, and of wildcards."""
    return "".join(char if shown(char) == char and char not in "*?[]" else "?" for char in name)


_NO_WORD: Final = re.compile(r"""[\s,:@+/\\'"$`!;&|<>(){}~#]|^-|\.(?=(?:sql|py|csv)$)""")
