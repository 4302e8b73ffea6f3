"""What the lineage tables know of an incident, asked through dbt (`dbt show`) on whatever engine they are.

Changes come from the package's own analysis `changed_upstream`, so that there is one answer to that question. Of
the engines' messages (the column `message`) nothing is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.artifacts.read_yaml import parse_yaml
from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions, temporary_folder, why
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.at_hand import FromTables, TableChange
from dbt_ripple.governance.incident_document import LastSuccess, Violation

_MOST: Final = "500"
"""Rows that are read of one question."""


def ask_tables(
    folder: Path,
    options: DbtOptions,
    own: Project,
    root: Node,
    column: str | None,
    since: timedelta,
    opened_at: datetime | None = None,
) -> FromTables:
    """Ask the tables of the dbt project in a folder.

    Args:
        folder: the dbt project that has the package.
        options: how dbt is called there.
        own: the project that is asked about.
        root: what failed.
        column: the column, as the analysis spells it.
        since: how long before the failure.
        opened_at: when it failed, as far as is known; else the time is counted back from now.

    Raises:
        RippleError: dbt is not installed here, the package is not in that project, or its tables are not there.
    """
    with temporary_folder() as target:
        kept = folder / "target" / "partial_parse.msgpack"
        if kept.is_file():
            (target / kept.name).write_bytes(kept.read_bytes())
        from_tables = FromTables()
        about = _Tables(folder, target, options, own.name)
        failures = about.rows(_FAILURE, of=root)
        for row in failures:
            from_tables.opened_at = _moment(row["opened_at"])
            from_tables.last_status, from_tables.last_failed_at = (
                row["status"],
                _moment(row["failed_at"]),
            )
        for row in about.rows(_LAST_PASSED, of=None):
            at = _moment(row["passed_at"])
            from_tables.passed[str(row["unique_id"])] = LastSuccess(
                at=at, invocation_id=row["invocation_id"] or None, reported_by="tables"
            )
        end = from_tables.opened_at or opened_at or datetime.now(UTC)
        begin = end - since
        passed = from_tables.passed.get(root.unique_id)
        if passed is not None and passed.at is not None:
            # What came into use after it last passed may be the cause, however long ago that was.
            begin = min(begin, passed.at)
        variables = {
            "ripple_node": root.unique_id,
            "ripple_since": begin.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
            **({"ripple_column": column} if column else {}),
        }
        for row in about.analysis("changed_upstream", variables):
            if row["project_name"] == own.name:
                from_tables.changes.append(_change(row))
        for row in about.rows(_VIOLATIONS, of=None):
            at = _moment(row["found_at"])
            if at is not None and at >= begin:
                from_tables.violations.append(_violation(row, at))
    return from_tables


class _Tables:
    """Asks one question after the other of the tables of one project."""

    def __init__(self, folder: Path, target: Path, options: DbtOptions, name: str) -> None:
        self._folder, self._target, self._options = folder.resolve(), target, options
        self._name = name

    def rows(self, query: str, of: Node | None) -> list[dict[str, Any]]:
        """The rows of a query on the package's models."""
        text = query.replace("{project}", _literal(self._name))
        if of is not None:
            text = text.replace("{unique_id}", _literal(of.unique_id))
        return self._shown(self._options, "--inline", text)

    def analysis(self, name: str, variables: dict[str, str]) -> list[dict[str, Any]]:
        """What an analysis of the package answers."""
        given = parse_yaml(self._options.variables or "{}", "--vars", as_dbt=True) or {}
        options = replace(self._options, variables=json.dumps({**given, **variables}))
        return self._shown(options, "--select", f"package:dbt_ripple,{name}")

    def _shown(self, options: DbtOptions, *what: str) -> list[dict[str, Any]]:
        dbt = Dbt(self._folder, self._target, options, log_level="none")
        result = dbt.attempt("show", *what, "--limit", _MOST, "--output", "json")
        if not result.success:
            raise RippleError(
                f"the lineage tables cannot be asked ({why(result)[:160]})",
                f"--tables: {self._folder}",
                "name a dbt project with the package dbt_ripple, whose var ripple_parts is all, and run `dbt-ripple build`",
            ) from result.exception
        return [row for shown in result.result.results for row in _of_table(shown.agate_table)]


def _of_table(table: Any) -> Iterator[dict[str, Any]]:
    names = [name.lower() for name in table.column_names]
    for row in table.rows:
        yield dict(zip(names, row.values(), strict=True))


def _literal(text: str) -> str:
    """A literal of SQL in Jinja, whatever characters it has."""
    return "{{ dbt.string_literal(dbt.escape_single_quotes(" + json.dumps(text) + ")) }}"


_FAILURE: Final = """
select
    last_status as status,
    cast(opened_at as {{ dbt.type_string() }}) as opened_at,
    cast(last_failed_at as {{ dbt.type_string() }}) as failed_at
from {{ ref('dbt_ripple', 'ripple_incident_failures') }}
where state = 'open' and project_name = {project} and unique_id = {unique_id}
order by last_failed_at
"""

_LAST_PASSED: Final = """
select unique_id, cast(ran_at as {{ dbt.type_string() }}) as passed_at, invocation_id
from (
    select
        *,
        row_number() over (partition by unique_id order by ran_at desc, invocation_id desc) as recency
    from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
    where is_success and project_name = {project}
) as successes
where recency = 1
"""

_VIOLATIONS: Final = """
select
    unique_id, name, owner, column_name, violation,
    cast(found_at as {{ dbt.type_string() }}) as found_at
from {{ ref('dbt_ripple', 'ripple_contract_violations') }}
where project_name = {project}
order by found_at desc
"""


def _change(row: dict[str, Any]) -> TableChange:
    return TableChange(
        unique_id=str(row["unique_id"]),
        depth=int(row["depth"]),
        column=row["column_name"],
        change=str(row["change"]),
        before=row["old_expression"],
        after=row["new_expression"],
        changed_at=_moment(row["changed_at"]),
        git_sha=row["git_sha"],
    )


def _violation(row: dict[str, Any], at: datetime) -> Violation:
    return Violation(
        unique_id=str(row["unique_id"]),
        name=str(row["name"]),
        column=row["column_name"],
        rule=str(row["violation"]),
        reason=None,
        at=at,
        owner=row["owner"],
    )


def _moment(value: Any) -> datetime | None:
    """A time of the warehouse, in UTC, as the tables have it."""
    if value is None:
        return None
    at = value if isinstance(value, datetime) else None
    if at is None:
        at = datetime.fromisoformat(str(value).strip().replace(" UTC", "+00:00"))
    return as_utc(at)
