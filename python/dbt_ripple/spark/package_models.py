"""Rows of the dbt package's models, read from Spark as plain values.

Where the models are the manifest says. A model that is not there (it was never built, or is switched
off) is no error: it is named, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.artifacts import Project
from dbt_ripple.errors import RippleError
from dbt_ripple.spark.load import check_adapter, described
from dbt_ripple.spark.session import first_line

if TYPE_CHECKING:
    from dbt_ripple.spark.server import Server

PREFIX: Final = "ripple_"
"""Of the names of all models of the package: a project may have an `incidents` of its own."""

Plain = str | int | float | bool | None
Rows = list[dict[str, Plain]]

ABOUT_NODES: Final[dict[str, tuple[str, ...]]] = {
    "contract_violations": ("unique_id",),
    "definition_changes": ("unique_id",),
    "incidents": ("node_id", "unique_id"),
    "last_successful_run": ("unique_id",),
    "test_history": ("node_id",),
}
"""The models that tell of single nodes, with the columns that hold ids."""

LOADS: Final = "dim_snapshots"
"""A model that every project with the package has: no part of it that is switched off."""


def relation_of(project: Project, model: str) -> str | None:
    """The name in the warehouse of a model of the package; None where the project does not have it.

    Args:
        project: its manifest.
        model: without the prefix that all of them have.
    """
    node = {**project.nodes, **project.hidden}.get(f"model.dbt_ripple.{PREFIX}{model}")
    return node.relation_name if node is not None else None


def check_package(project: Project) -> None:
    """Refuse a project whose lineage tables cannot be there.

    Raises:
        RippleError: it is not on Spark, or does not have the dbt package.
    """
    check_adapter(project.metadata.adapter_type)
    if relation_of(project, LOADS) is None:
        raise RippleError(
            "the project does not have the dbt package dbt_ripple, so there are no models to read",
            project.target_path,
            "add it to packages.yml, run `dbt deps` and then `dbt-ripple build`",
        )


def read_models(
    server: Callable[[], Server], project: Project, models: Iterable[str]
) -> tuple[dict[str, Rows], dict[str, str]]:
    """All rows of models, of this project and no other that has its lineage in the same tables.

    Times are ISO 8601 in UTC. Rows are ordered by what they hold, whatever Spark gave first.

    Args:
        server: gives the Spark; it is asked only if the project has the package.
        project: its manifest.
        models: by name.

    Returns:
        The rows of each model that could be read, and of each other why not.

    Raises:
        RippleError: the project is not on Spark or does not have the package, or Spark cannot be reached.
    """
    check_package(project)
    wanted = {model: relation_of(project, model) for model in models}
    spark = server()
    rows: dict[str, Rows] = {}
    unread: dict[str, str] = {}
    for model, relation in wanted.items():
        if relation is None:
            unread[model] = (
                "the var ripple_parts does not switch it on, or the project has another dbt_ripple"
            )
            continue
        try:
            records = _rows_of(spark, relation, project.name)
        except Exception as error:  # of Spark, by what it works on
            unread[model] = (
                f"it cannot be read ({first_line(error)[:200]}): `dbt-ripple build` makes it"
            )
            continue
        rows[model] = sorted(records, key=_order)
    return rows, unread


def rows_about(
    server: Callable[[], Server], project: Project, unique_ids: Collection[str]
) -> tuple[dict[str, Rows], dict[str, str]]:
    """The rows of `ABOUT_NODES` that tell of some nodes; otherwise as `read_models`."""
    rows, unread = read_models(server, project, ABOUT_NODES)
    return {
        model: about(rows_of_model, ABOUT_NODES[model], unique_ids)
        for model, rows_of_model in rows.items()
    }, unread


def weeks_of(
    server: Callable[[], Server], project: Project, model: str, column: str
) -> list[str] | None:
    """The weeks of the times in a column, by their first moment in ISO 8601; None if it cannot be read."""
    relation = relation_of(project, model)
    if relation is None:
        return None
    week = f"unix_micros(date_trunc('week', `{column}`)) as week"
    of_project = f"project_name = {_literal(project.name)}"
    try:
        found = server().rows(f"select distinct {week} from {relation} where {of_project}")
    except Exception:  # of Spark, by what it works on
        return None
    return sorted(_moment(row["week"]) for row in found if row["week"] is not None)


def about(rows: Rows, columns: Sequence[str], unique_ids: Collection[str]) -> Rows:
    """The rows in which one of some columns holds one of some ids."""
    return [row for row in rows if any(row.get(column) in unique_ids for column in columns)]


def _rows_of(spark: Server, relation: str, project: str) -> Rows:
    """The rows of a relation: where it has the column `project_name`, only those of a project."""
    types = described(spark, relation)
    selected = ", ".join(f"{_as_plain(name, type_)} as `{name}`" for name, type_ in types.items())
    of_project = f" where project_name = {_literal(project)}" if "project_name" in types else ""
    times = {name for name, type_ in types.items() if type_ == "timestamp"}
    return [
        {
            name: _moment(value) if name in times and value is not None else _plain(value)
            for name, value in row.items()
        }
        for row in spark.rows(f"select {selected} from {relation}{of_project}")
    ]


def _as_plain(name: str, type_: str) -> str:
    """A column as every connection hands it on: times by their microseconds, whatever zone it has."""
    if type_ == "timestamp":
        return f"unix_micros(`{name}`)"
    if type_.startswith(("array", "map", "struct")):
        return f"to_json(`{name}`)"
    return f"`{name}`"


def _moment(micros: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat()


def _literal(text: str) -> str:
    """A literal that no setting of a session reads otherwise, whatever characters it has."""
    return f"cast(X'{text.encode().hex()}' as string)"


def _plain(value: Any) -> Plain:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value, sort_keys=True, default=str)


def _order(row: Mapping[str, Plain]) -> str:
    return json.dumps(row, sort_keys=False, default=str)
