"""Column edges -> a file, which is written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_ripple.errors import RippleError
from dbt_ripple.secrets import scrub_value

if TYPE_CHECKING:
    from dbt_ripple.graph.lineage import Analysis, ColumnEdge

COLUMNS = (
    "parent_id",
    "parent_column",
    "child_id",
    "child_column",
    "type",
    "subtype",
    "masking",
    "expression",
)
"""The columns of the file, in order: those of the table ``column_edges``, and the SQL that computes
the child's column over the relations its query reads."""

Write = Callable[[Path, "Sequence[ColumnEdge]", "Expressions"], None]
Expressions = Mapping[tuple[str, str], str]
"""The SQL behind each column, by unique_id and lower-case name."""

_Row = tuple[str | bool | None, ...]


def expressions_of(analysis: Analysis) -> Expressions:
    """The SQL behind each column of an analysis."""
    return {
        (unique_id, name.lower()): text
        for unique_id, analysed in analysis.nodes.items()
        for name, text in zip(analysed.columns, analysed.expressions, strict=False)
        if text
    }


def writer(path: Path) -> Write:
    """The function that writes edges to such a file, chosen by its suffix.

    It is asked for before the work begins, so that a wrong name costs no time.

    Raises:
        RippleError: the suffix is none of .jsonl, .csv and .parquet, or the file cannot be there.
    """
    formats = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
    content = formats.get(path.suffix.lower())
    if content is None:
        raise RippleError(
            f"unknown suffix {path.suffix!r}" if path.suffix else "a file name without a suffix",
            str(path),
            "end it in .jsonl, .csv or .parquet",
        )
    if path.is_dir():
        raise RippleError("is a folder", str(path), "give the name of a file")
    if not path.parent.is_dir():
        raise RippleError("no such folder", str(path.parent), "make it first")

    def write(path: Path, edges: Sequence[ColumnEdge], expressions: Expressions) -> None:
        rows: list[_Row] = scrub_value(
            [(*edge, expressions.get((edge[2], edge[3].lower()))) for edge in edges]
        )
        _whole(path, rows, content)

    return write


def _whole(path: Path, rows: list[_Row], content: Callable[[Path, list[_Row]], None]) -> None:
    """Write beside the file and rename, so that nobody ever sees half of it."""
    draft: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        draft = Path(name)
        content(draft, rows)
        # mkstemp makes files private; a new file has what the user's umask gives.
        umask = os.umask(0)
        os.umask(umask)
        draft.chmod(0o666 & ~umask)
        draft.replace(path)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise RippleError(
            f"cannot be written ({error.strerror or error})",
            str(path),
            "choose a folder this user may write to",
        ) from None
    except BaseException:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise


def _jsonl(path: Path, rows: list[_Row]) -> None:
    import msgspec

    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for row in rows:
            file.write(encode(dict(zip(COLUMNS, row, strict=True))) + b"\n")


def _csv(path: Path, rows: list[_Row]) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for *texts, masking, expression in rows:
            out.writerow((*texts, "true" if masking else "false", expression))


def _parquet(path: Path, rows: list[_Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = [pa.bool_() if name == "masking" else pa.string() for name in COLUMNS]
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(COLUMNS)), path)
