"""Whether a file is as dbt has read it: by its checksum, which since dbt 1.12 does not see white space."""

from __future__ import annotations

import hashlib

import pytest

from dbt_ripple.changes.dbt_vars import FileSeen

SQL = "select 'a b' as x\n"


def checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


BEFORE_1_12 = checksum(SQL.strip())
SINCE_1_12 = checksum(" ".join(SQL.split()))


@pytest.mark.parametrize(
    ("seen", "now", "holds"),
    [
        (FileSeen(BEFORE_1_12), f"\n{SQL}\n", True),
        (FileSeen(BEFORE_1_12), "select 'c' as x", False),
        (FileSeen(checksum("select\n1")), "select\n1", True),
        (FileSeen(checksum("name: p\n\n\nvars: {}\n")), "name: p\r\n\r\n\r\nvars: {}\r\n", True),
        (FileSeen(checksum("name: p\n\n\nvars: {}\n")), "name: p\r\n\r\nvars: {}\r\n", False),
        (FileSeen(checksum("select 1")), "select\n1", None),  # as in YAML: the time has to tell
        (FileSeen(checksum("select 1"), ("select\n1",)), "select\n1\n", True),
        (FileSeen(checksum("select 1"), ("select\n1",)), "select\r\n1\n", True),
        (FileSeen(checksum("select 1"), ("select\n1",)), "select  1", False),
        (FileSeen(SINCE_1_12, ("select 'a b' as x",)), "select 'a  b' as x", False),
        (FileSeen(SINCE_1_12, ("select 'a b' as x",)), "select 'c' as x", False),
        (FileSeen("", ("{% macro m() %}\n", "1")), "{% macro m() %}\r\n1", True),
        (FileSeen("", ("{% macro m() %}'a b'",)), "{% macro m() %}'a  b'", None),
        (FileSeen("", ("{% macro m() %}", "2")), "{% macro m() %} 1", False),
    ],
)
def test_a_file_holds(seen: FileSeen, now: str, holds: bool | None) -> None:
    assert seen.holds(now.encode()) is holds
