"""How much of a project could be analysed, as text, Markdown and JSON; and its column edges as a file.

The file is written completely or not at all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_ripple.errors import RippleError
from dbt_ripple.reasons import COLUMNS_UNKNOWN, Code
from dbt_ripple.rendering.escaping import code, prose, styled
from dbt_ripple.rendering.output import as_document, count, percent, plain
from dbt_ripple.secrets import scrub_value

if TYPE_CHECKING:
    from dbt_ripple.graph.analysis_coverage import AnalysisCoverage, UnanalysedNode
    from dbt_ripple.graph.lineage import Analysis, ColumnEdge


def render(summary: AnalysisCoverage, style: str) -> list[str]:
    """The summary in one of the formats of ``--format``, line by line."""
    if style == "json":
        return as_document(_document(summary))
    return list(_markdown(summary) if style == "markdown" else _text(summary))


def _document(summary: AnalysisCoverage) -> dict[str, Any]:
    # A broken node cannot be analysed either; its reason says what is missing.
    unseen = [*summary.opaque, *(_as_broken(item) for item in summary.broken)]
    return {
        "models": summary.models,
        "analysed": summary.analysed,
        **({"assets": summary.assets} if summary.assets is not None else {}),
        "opaque": [
            {name: value for name, value in plain(item).items() if name != "name"}
            for item in unseen
        ],
        "columns": summary.columns,
        "edges": summary.edges,
        "seconds": summary.seconds,
    }


def _as_broken(item: UnanalysedNode) -> UnanalysedNode:
    from dbt_ripple.graph.analysis_coverage import UnanalysedNode

    return UnanalysedNode(item.unique_id, item.name, Code.BROKEN(because=item.reason))


def _facts(summary: AnalysisCoverage) -> list[tuple[str, str]]:
    share = f" ({percent(summary.analysed / summary.models)})" if summary.models else ""
    indirect = summary.edges - summary.value_edges
    stages = ", ".join(f"{stage} {summary.seconds[stage]:.1f}" for stage in summary.seconds)
    return [
        ("analysed", f"{summary.analysed:,} of {count(summary.models, 'model')}{share}"),
        ("opaque", f"{len(summary.opaque):,}"),
        ("broken", f"{len(summary.broken):,}"),
        ("columns", f"{summary.columns:,}"),
        ("edges", f"{summary.edges:,} ({summary.value_edges:,} DIRECT, {indirect:,} INDIRECT)"),
        ("seconds", f"{sum(summary.seconds.values()):.1f} ({stages})"),
    ]


def _heading(summary: AnalysisCoverage) -> str:
    kinds = [count(summary.kinds[kind], kind) for kind in _MAIN_KINDS if kind in summary.kinds]
    return f"{summary.project} · dbt {summary.dbt_version} · {summary.adapter} · {', '.join(kinds)}"


_MAIN_KINDS = ("model", "source", "seed", "snapshot", "test", "exposure", "asset")

_EXPLAINED = {
    "Opaque": "every column is taken to depend on all that its parents hold",
    "Broken": "a column it reads does not exist, or is ambiguous",
}


def _unseen(summary: AnalysisCoverage) -> list[tuple[str, list[UnanalysedNode]]]:
    both = [("Opaque", summary.opaque), ("Broken", summary.broken)]
    return [(title, items) for title, items in both if items]


def _next(summary: AnalysisCoverage) -> Iterator[str]:
    if summary.uncompiled:
        yield (
            f"{count(summary.uncompiled, 'node')} not compiled: run `dbt docs generate "
            "--target-path target-ripple` on the whole project and pass that --target-path"
        )
    elif not summary.has_catalog and any(
        item.reason.code in COLUMNS_UNKNOWN for item in summary.opaque
    ):
        yield "no catalog.json: `dbt docs generate` tells the columns of sources, for `select *`"
    if summary.catalog_is_older and any(
        item.reason.code is Code.MAY_NOT_BUILD for item in summary.opaque
    ):
        yield "catalog.json is older than manifest.json: run `dbt docs generate` again"
    if summary.widest:
        yield f"dbt-ripple trace {summary.widest}"


def _text(summary: AnalysisCoverage) -> Iterator[str]:
    yield styled(_heading(summary), bold=True)
    yield ""
    facts = _facts(summary)
    for name, value in facts:
        alarming = (name == "broken" and summary.broken) or (name == "opaque" and summary.opaque)
        shown = styled(value, fg="yellow") if alarming else value
        yield f"  {name:<9} {shown}"
    for title, items in _unseen(summary):
        yield ""
        yield f"{styled(title, fg='yellow')}: {_EXPLAINED[title]}"
        width = max(len(item.name) for item in items[:_SHOWN])
        for item in items[:_SHOWN]:
            yield f"  {item.name:<{width}}  {_short(item.reason.message)}"
        if len(items) > _SHOWN:
            yield f"  and {len(items) - _SHOWN:,} more; --format json has all"
    yield ""
    for step in _next(summary):
        yield f"Next: {step}"


_SHOWN = 20


def _short(reason: str, limit: int = 160) -> str:
    return reason if len(reason) <= limit else f"{reason[: limit - 3]}..."


def _markdown(summary: AnalysisCoverage) -> Iterator[str]:
    yield f"### {prose(_heading(summary))}"
    yield ""
    yield from _table(("", ""), _facts(summary))
    for title, items in _unseen(summary):
        yield ""
        yield f"**{title}**: {_EXPLAINED[title]}"
        yield ""
        rows = ((code(item.unique_id), prose(item.reason.message)) for item in items)
        yield from _table(("node", "reason"), rows)


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"| {head[0]} | {head[1]} |"
    yield "| --- | --- |"
    for left, right in rows:
        yield f"| {left} | {right} |"


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
