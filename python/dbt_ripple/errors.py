"""The one kind of error that a user sees: what is wrong, where, and what to do."""

from __future__ import annotations

from typing import Final

EXIT_CANNOT_RUN = 2
"""Exit code of every command that could not look (an empty answer never means that)."""


TRACEBACK: Final = "DBT_RIPPLE_TRACEBACK"
"""The environment variable that has an unexpected error raised, in place of told in a line."""
_MESSAGE: Final = 300


def mistake(error: Exception) -> str:
    """What is said of an error that nobody has expected."""
    what = " ".join(str(error).split())[:_MESSAGE] or "it says nothing else"
    return (
        f"this is a mistake of dbt-ripple: {type(error).__name__} ({what}); set {TRACEBACK}=1 to see"
        " where, and report it"
    )


class RippleError(Exception):
    """Bad input or an environment that cannot do what was asked.

    The command line prints it as one line and exits with :data:`EXIT_CANNOT_RUN`.

    Args:
        what: what is wrong, as a phrase without a full stop.
        where: the file, option or address it is wrong in.
        fix: what the user should do, as an imperative phrase.

    Example:
        >>> print(RippleError("no manifest.json", "target/", "run `dbt docs generate` first"))
        target/: no manifest.json; run `dbt docs generate` first
    """

    def __init__(self, what: str, where: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        tail = f"; {self.fix}" if self.fix else ""
        return " ".join(f"{head}{self.what}{tail}".split())
