"""Writes docs/reasons.md: the codes of all reasons, from `dbt_ripple.reasons`.

python tools/reasons.py
"""

from __future__ import annotations

from pathlib import Path

from dbt_ripple.reasons import Code

HEAD = """\
# Reasons

Why does dbt-ripple say this, and how does a program tell one reason from another? Wherever an answer gives a reason, a finding or a note, JSON has the sentence, and beside it
the code and the arguments: of `reason` these are `reason_code` and `reason_arguments`, of `message` `message_code` and `message_arguments`. A list of sentences such as `notes`
has a list of values beside it, `notes_coded`, each with `code`, `arguments` and `message`. Codes are stable; sentences may change in any version. An argument can be a
reason itself.

`{name}` stands for an argument. Of a list, what follows the colon says how it is written: `3` shows three of it, `and` and `;` stand between its parts.

| code | sentence |
| --- | --- |
"""


def _shown(sentence: str) -> str:
    """A sentence as a cell of a table: braces that are no argument once."""
    return sentence.replace("|", chr(92) + "|").replace("{{", "{").replace("}}", "}")


if __name__ == "__main__":
    rows = [f"| `{code.value}` | {_shown(code.sentence)} |\n" for code in Code]
    table = Path(__file__).parents[2] / "docs" / "reasons.md"
    table.write_text(HEAD + "".join(rows), encoding="utf-8")
