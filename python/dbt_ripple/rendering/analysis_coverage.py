"""How much of a project could be analysed, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dbt_ripple.reasons import COLUMNS_UNKNOWN, Code
from dbt_ripple.rendering.escaping import code, prose, styled
from dbt_ripple.rendering.output import as_document, count, percent

if TYPE_CHECKING:
    from dbt_ripple.graph.analysis_coverage import AnalysisCoverage, UnanalysedNode


def render(summary: AnalysisCoverage, style: str) -> list[str]:
    """The summary in one of the formats of ``--format``, line by line."""
    if style == "json":
        return as_document(_document(summary))
    return list(_markdown(summary) if style == "markdown" else _text(summary))


def _document(summary: AnalysisCoverage) -> dict[str, Any]:
    from dbt_ripple.rendering.json_values import plain

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
