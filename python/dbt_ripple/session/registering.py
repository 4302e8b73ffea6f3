"""Writes assets that dbt does not build into ripple_assets.yml: declared ones, and jobs by their SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_ripple.artifacts.paths import FILE, assets_files
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.asset_edits import Edited, Registration, registered
from dbt_ripple.rendering.output import warn

if TYPE_CHECKING:
    from dbt_ripple.artifacts.assets_file import DeclaredAsset
    from dbt_ripple.graph.assets.asset_lineage import AssetLineage
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.target_folder import TargetFolder

ToRegister = Callable[["DeclaredGraph", "Analysis"], list[Registration]]
"""Makes registrations of what is known already."""


def register(
    target: TargetFolder,
    file: Path,
    others: Sequence[DeclaredAsset],
    registrations: Sequence[Registration] | ToRegister,
    dry_run: bool,
) -> Edited:
    """Register assets over a project.

    Args:
        target: the artifacts of dbt's project; of none, without nodes.
        file: what is written.
        others: the assets of other files.
        registrations: these, or what makes them.
        dry_run: whether nothing is written.

    Raises:
        RippleError: an id, a type or a name is not valid, with the nearest that is; the file is left alone.
    """
    from dbt_ripple.artifacts.assets_file import read_assets
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

    project, analysis = target.project, target.analysis(tests=False)
    if callable(registrations):
        there = read_assets([file]) if file.is_file() else []
        registrations = registrations(DeclaredGraph(project, [*there, *others]), analysis)
    edited = registered(file, registrations, project, analysis, others)
    if edited.changed and not dry_run:
        edited.write()
    return edited


def files_of(
    file: Path | None, project_dir: Path, given: Sequence[Path] = ()
) -> tuple[Path, list[DeclaredAsset]]:
    """The file to be written, by default ripple_assets.yml, and the assets of the others that are read.

    Args:
        file: what is named to be written.
        project_dir: beside which ripple_assets.yml is.
        given: further files that are read.

    Raises:
        RippleError: a file is not there, or not valid.
    """
    from dbt_ripple.artifacts.assets_file import read_assets

    where = file or project_dir / FILE
    own = where.resolve()
    others = [one for one in assets_files(project_dir, given) if one.resolve() != own]
    return where, read_assets(others) if others else []


def pipeline_of(ids: Sequence[str], properties: dict[str, Any]) -> ToRegister:
    """What registers a pipeline: each of some ids, which may be nodes of dbt, reads the one before it.

    Args:
        ids: in order.
        properties: of all of them, as `Registration` has them; a list of descriptions is one for each hop, and
            goes to the asset that it leads to, or else to that which it comes from.
    """

    def steps(graph: DeclaredGraph, analysis: Analysis) -> list[Registration]:
        from dbt_ripple.artifacts import find_node

        def is_dbt(name: str) -> bool:
            try:
                return find_node(graph.project, name)[1] is None
            except RippleError:
                return False

        return list(_pipeline(ids, properties, is_dbt))

    return steps


def _pipeline(
    ids: Sequence[str], properties: dict[str, Any], is_dbt: Callable[[str], bool]
) -> Iterator[Registration]:
    labels = properties.get("description")
    of_all = {key: value for key, value in properties.items() if key != "description"}
    for i, name in enumerate(ids):
        before = ids[i - 1] if i else None
        after = ids[i + 1] if i + 1 < len(ids) else None
        if is_dbt(name):
            if before is not None and is_dbt(before):
                raise RippleError(
                    f"{before} and {name} are both of dbt, which knows how they hang together",
                    name,
                    "begin or end the pipeline here",
                )
            continue
        into_dbt = after is not None and is_dbt(after)
        hops = [*([i - 1] if i else []), *([i] if into_dbt else [])]
        label = labels
        if labels is not None and not isinstance(labels, str):
            label = "; ".join(labels[hop] for hop in hops if labels[hop]) or None
        yield Registration(
            id=name,
            reads=[before] if before is not None else [],
            writes=[after] if after is not None and into_dbt else [],
            description=label,
            **of_all,
        )


def capture(
    target: TargetFolder,
    file: Path,
    others: Sequence[DeclaredAsset],
    cache: Cache | None,
    sql: str,
    id_: str | None,
    dialect: str | None,
    dry_run: bool,
    **properties: Any,
) -> dict[str, Any]:
    """Follow the SQL of a job, and register it.

    Args:
        target: as for `register`, like `file`, `others` and `dry_run`.
        file: see there.
        others: see there.
        cache: of earlier analyses.
        sql: statements.
        id_: of the job; by default named after what it writes.
        dialect: of the SQL; by default the project's.
        dry_run: see there.
        properties: as `Registration` has them.

    Returns:
        The id, the source and target tables, and the columns, as ``dbt-ripple capture --format json`` has them.

    Raises:
        RippleError: the SQL or the dialect is not valid, or it writes to nothing and has no id.
    """
    from dbt_ripple.artifacts.assets_file import parse_assets
    from dbt_ripple.graph.assets.asset_lineage import AssetLineage
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

    _check_dialect(dialect)
    name = _named_after(sql, dialect or _dialect_of(target.project), id_)
    one = Registration(id=name, type=None, sql=sql, dialect=dialect, **properties)
    analysis = target.analysis(tests=False)
    edited = registered(file, [one], target.project, analysis, others)
    declared = [*parse_assets(edited.text, str(file)), *others]
    lineage = AssetLineage(DeclaredGraph(target.project, declared), analysis, cache)
    unique_id = "asset." + one.id.replace(":", ".", 1)
    document = _document(lineage, unique_id, one.id)
    reason = lineage.analysis.nodes[unique_id].reason
    if reason is not None:
        warn(f"{one.id}: {reason.message}")
    if not dry_run:
        edited.write()
    return {**document, "file": str(file), "written": not dry_run}


def _check_dialect(dialect: str | None) -> None:
    """Refuse a dialect that nobody knows."""
    from dbt_ripple.artifacts import did_you_mean
    from dbt_ripple.flow.reading.dialects import dialects

    if dialect is not None and dialect not in dialects():
        fix = did_you_mean(dialect, dialects(), f"the dialects are {', '.join(dialects())}")
        raise RippleError(f"{dialect!r} is no dialect of SQL", "--dialect", fix)


def _dialect_of(project: Any) -> str:
    from dbt_ripple.flow.identifiers import dialect_of

    return dialect_of(project.metadata.adapter_type)


def _named_after(text: str, dialect: str, given: str | None) -> str:
    """The id of a job: of one that has none, what it writes to is its name.

    Raises:
        RippleError: the SQL cannot be read, or writes to nothing.
    """
    from dbt_ripple.flow.statements import statements
    from dbt_ripple.reasons import Reason

    parsed = statements(text, dialect)
    targets = (
        []
        if isinstance(parsed, Reason)
        else [s.writes.spelled for s in parsed if s.writes is not None and not s.temporary]
    )
    if isinstance(parsed, Reason):
        raise RippleError(parsed.message, "the SQL", "correct it, or say its --dialect")
    if given is not None:
        return given
    if not targets:
        raise RippleError("the SQL writes to nothing it could be named after", "--id", "give an id")
    return f"job:{targets[-1]}"


def _document(lineage: AssetLineage, unique_id: str, id_: str) -> dict[str, Any]:
    graph = lineage.graph
    asset = graph.assets[unique_id]

    def name(of: str) -> str:
        node = graph.whole.nodes.get(of)
        if node is None:
            return of
        return f"{node.source_name}.{node.name}" if node.source_name else node.spoken_name

    linked = lineage.linked[unique_id]
    deps_of_columns = dict(zip(linked.analysis.columns, linked.deps, strict=False))
    columns = []
    for edge in lineage.edges:
        if edge.parent_id == unique_id and edge.parent_column in deps_of_columns:
            sources = [
                {"table": name(table), "column": column}
                for table, column in deps_of_columns[edge.parent_column]
            ]
            columns.append(
                {"table": name(edge.child_id), "column": edge.child_column, "from": sources}
            )
    return {
        "id": id_,
        "source_tables": [name(u) for u in asset.above()],
        "target_tables": [name(u) for u in asset.below()],
        "columns": columns,
    }
