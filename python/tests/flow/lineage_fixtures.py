"""Lineage fixtures: SQL in, lineage out, as text.

A file under ``tests/fixtures/lineage/<dialect>/`` holds cases one after the other::

    -- case: a left join keeps the left side's rows
    select t.id, u.c from t left join u on t.id = u.id
    -- id <- t.id
    -- c <- u.c
    -- rows <- t.id JOIN, u.id JOIN

* ``-- case: NAME`` opens a case; the lines after it up to the first expectation are the query
  (comments in it are part of it, unless they look like an expectation or a pragma).
* ``-- OUTPUT <- SOURCE KIND, ...`` is one output column, in order. A source is ``table.column`` with
  its kinds joined by ``+``; no kind means IDENTITY; `` masked`` after a kind means masking. Nothing
  after the arrow: no column goes in. An output whose name the engine makes up is written ``?``.
  ``-- t: id, a <- same`` is two outputs, each the column of its name in ``t``.
* ``-- rows <- ...`` is the row set's sources; without that line it has none.
* ``table.*rows*`` stands for the rows of a table; they are compared only on lines that name them.
* Pragmas of a case: ``-- opaque: TEXT`` (the query is not followed, and the reason holds TEXT),
  ``-- missing: NAME, ...`` (names that cannot be resolved), ``-- unknown: TEXT`` (why some columns
  cannot be known by position), ``-- rest: yes`` (it has more columns, which cannot be named),
  ``-- spark: no, WHY`` (Spark's analyser is no judge of it),
  ``-- exception: WHY`` (ours and Catalyst's differ, and should), ``-- open: WHY`` (expected to fail).
* Before the first case, ``-- dialect: NAME`` gives the file's dialect; otherwise the folder's name is.

The tables are those of ``tests/fixtures/lineage/tables.sql``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dbt_ripple.flow.ir import DIRECT, IDENTITY, KINDS, MASK_SHIFT

FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "lineage"

Source = tuple[str, str]
Deps = dict[Source, int]

_BITS: Final = {name: bit for bit, _, name, masked in KINDS if not masked}
_PRAGMAS: Final = ("opaque", "missing", "unknown", "rest", "spark", "exception", "open")
_CASE: Final = re.compile(r"-- case: (.+)")
_PRAGMA: Final = re.compile(rf"-- ({'|'.join(_PRAGMAS)}): ?(.*)")
_ARROW: Final = re.compile(r"-- (.+?) <-(?: (.*))?")
_SOURCE: Final = re.compile(r"(\w+)\.(\S+)(?: (.+))?")


@dataclass
class Fixture:
    """One case of a fixture file.

    Attributes:
        path, line: where it stands. name: what it shows. dialect: what it is written in.
        sql: the query. outputs: (name, sources) in order. rows: the row set's sources.
        pragmas: by name, what they say.
    """

    path: Path
    line: int
    name: str
    dialect: str
    sql: str
    outputs: list[tuple[str, Deps]] = field(default_factory=list)
    rows: Deps = field(default_factory=dict)
    pragmas: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """``dialect/file: name``."""
        return f"{self.path.parent.name}/{self.path.stem}: {self.name}"


def read_tables(folder: Path = FOLDER) -> dict[str, list[tuple[str, str]]]:
    """The tables the fixtures read: name -> columns with their Spark types, in order."""
    tables: dict[str, list[tuple[str, str]]] = {}
    for name, body in re.findall(
        r"create table (\w+) \(\n(.*?)\n\);", (folder / "tables.sql").read_text(), re.S
    ):
        columns = (line.strip().rstrip(",").split(" ", 1) for line in body.splitlines())
        tables[name] = [(column, kind) for column, kind in columns]
    return tables


def read_fixtures(folder: Path = FOLDER) -> list[Fixture]:
    """Every case of every file, in order.

    Raises:
        ValueError: a file does not keep to the format, with the file and the line.
    """
    fixtures: list[Fixture] = []
    for path in sorted(folder.glob("*/**/*.sql")):
        fixtures.extend(_read(path))
    return fixtures


def _read(path: Path) -> list[Fixture]:
    dialect = path.parent.name
    cases: list[Fixture] = []
    query: list[str] = []
    told = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := _CASE.fullmatch(line):
            _close(cases, query, told)
            cases.append(Fixture(path, number, match[1].strip(), dialect, ""))
            query, told = [], False
        elif not cases:
            if match := re.fullmatch(r"-- dialect: (\w+)", line):
                dialect = match[1]
        elif match := _PRAGMA.fullmatch(line):
            cases[-1].pragmas[match[1]] = match[2].strip()
            told = told or match[1] in ("opaque", "missing")
        elif match := _ARROW.fullmatch(line):
            told = True
            _expect(cases[-1], match[1], match[2] or "", number)
        else:
            query.append(line)
    _close(cases, query, told)
    return cases


def _close(cases: list[Fixture], query: list[str], told: bool) -> None:
    if not cases:
        return
    case = cases[-1]
    case.sql = "\n".join(query).strip()
    if not case.sql or not told:
        raise ValueError(f"{case.path}:{case.line}: a case needs a query and what is expected")


def _expect(case: Fixture, left: str, right: str, number: int) -> None:
    where = f"{case.path}:{number}"
    if right == "same":
        table, _, names = left.partition(": ")
        for name in names.split(", "):
            case.outputs.append((name, {(table, name): IDENTITY}))
        return
    deps: Deps = {}
    for part in filter(None, (p.strip() for p in right.split(", "))):
        match = _SOURCE.fullmatch(part)
        if match is None:
            raise ValueError(f"{where}: {part!r} is no source")
        mask = 0
        for kind in (match[3] or "IDENTITY").split("+"):
            bit = _BITS.get(kind.removesuffix(" masked"))
            if bit is None:
                raise ValueError(f"{where}: {kind} is no kind")
            mask |= bit << MASK_SHIFT if kind.endswith(" masked") else bit
        deps[(match[1], match[2])] = mask
    if left == "rows":
        wrong = [k for k, m in deps.items() if m & DIRECT and k[1] != "*rows*"]
        if wrong:
            raise ValueError(f"{where}: a row set has no value sources")
        case.rows = deps
    else:
        case.outputs.append((left, deps))


def written(deps: Deps) -> str:
    """Dependencies as a fixture writes them."""
    parts = []
    for (table, column), mask in sorted(deps.items()):
        kinds = [name + " masked" * masked for bit, _, name, masked in KINDS if mask & bit]
        shown = "" if kinds == ["IDENTITY"] else " " + "+".join(kinds)
        parts.append(f"{table}.{column}{shown}")
    return ", ".join(parts)
