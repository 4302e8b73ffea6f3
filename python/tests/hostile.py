"""Names as somebody else may write them, and what must not come out of them."""

from __future__ import annotations

import unicodedata
from typing import Final

from hypothesis import strategies as st

PARTS: Final = (
    *("\n", "\r", "\t", "\x00", "\x07", "\x08", "\x1b", "\x7f", "\x85", "\x9b31m", "\xa0"),
    *("\x1b[31m", "\x1b[2J", "\x1b]8;;https://x.example\x1b\\y\x1b]8;;\x1b\\", "\x1b]0;t\x07"),
    *("\u200b", "\u200d", "\u202e", "\u2066", "\u2069", "\u2028", "\ufeff", "\u061c", "\u3164"),
    *("\U000e0041", "\U000e0101", "\ue000", "\ufdd0"),
    *(
        "`",
        "``",
        "```",
        "|",
        "\\",
        "\\|",
        "*",
        "**",
        "_",
        "__",
        "~",
        "$x$",
        "[x](http://y)",
        "![x](y)",
    ),
    *(
        "<!--",
        "-->",
        "<b>",
        "</details>",
        "<script>",
        "&lt;",
        "&#64;",
        "<http://x.y>",
        "www.x.example",
    ),
    *("https://x.example/", "@everyone", "@org/team", "#123", "GH-7", "org/repo#1", ":tada:"),
    *(
        "::error::x",
        "::",
        "##[error]x",
        "##vso[task.x]",
        "%0A",
        "%",
        "# ",
        "- ",
        "1. ",
        "> ",
        "===",
    ),
    *(
        "'",
        '"',
        ",",
        ".",
        ";",
        ":",
        "/",
        "../",
        " ",
        "  ",
        "a",
        "Z9",
        "straße",
        "日本",
        "🙂",
        "end",
    ),
    *("{0}", "$(x)", "*rows*", "--", "+"),
)

SURROGATES: Final = ("\ud800", "\udc80", "\udfff")

hostile: Final = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join)
"""Text made of what breaks renderings."""


def unsafe(text: str) -> list[str]:
    """Characters of a rendering, without its newlines, that no terminal or page may be sent."""
    return [
        f"U+{ord(char):04X}"
        for char in text
        if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]
