"""`comes_from` and `not_from`: dbt's verdict, from the tables, is the one from the artifacts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, loaded, rows

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_tests import LineageJudge, lineage_tests

pytestmark = pytest.mark.slow

SOURCES = """
sources:
  - name: raw
    schema: dev
    tables:
      - name: raw_orders
        columns:
          - {name: id}
          - {name: amount}
          - {name: qty}
          - {name: email, meta: {pii: email}}
          - {name: phone, meta: {pii: phone}}
      - name: built
        columns: [{name: net}]
"""
SQL = {
    "stg": "select id, amount, qty, lower(email) as email, phone, 1 as one from {{ source('raw', 'raw_orders') }}",
    "fct": """
        with lines as (select id, amount * qty as net, md5(email) as email_hash, email, phone,
            case when email like '%x' then 1 else 0 end as is_x from {{ ref('stg') }})
        select *, concat(email, phone) as contact, count(*) over () as lines_in_all from lines""",
    "opaque": "select id, amount, email from query_table('stg') -- {{ ref('stg') }}",
    "below": "select id, amount, email from {{ ref('opaque') }}",
    "built": "select net from {{ ref('fct') }}",
    "of_source": "select net from {{ source('raw', 'built') }} -- {{ ref('built') }}",
}

# Model, column, test, and the words that a problem has; None where the test holds.
CASES: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("fct", "net", {"comes_from": {"columns": ["raw.raw_orders.amount"]}}, None),
    ("fct", "net", {"comes_from": {"columns": ["raw_orders.AMOUNT", "stg.qty"]}}, None),
    ("fct", "net", {"comes_from": {"columns": ["raw_orders.amount"], "only": True}}, "raw_orders.qty, too"),
    ("fct", "net", {"comes_from": {"columns": ["raw_orders.amount", "stg.qty"], "only": True}}, None),
    ("fct", "net", {"comes_from": {"columns": ["raw_orders.*"], "only": True}}, None),
    ("fct", "net", {"comes_from": {"columns": ["raw_orders.email"]}}, "does not come from raw_orders.email"),
    ("fct", "is_x", {"comes_from": {"columns": ["raw_orders.email"]}}, "does not come from raw_orders.email"),
    ("fct", "net", {"comes_from": {"columns": ["raw_orders.amuont"]}}, "amount?"),
    ("stg", "one", {"comes_from": {"columns": ["raw_orders.id"], "only": True}}, "does not come from"),
    ("fct", "lines_in_all", {"comes_from": {"columns": ["stg.*"]}}, None),
    ("fct", "email_hash", {"not_from": {"pii": True}}, None),
    ("fct", "email_hash", {"not_from": {"columns": ["raw_orders.email"]}}, "comes from raw"),
    ("fct", "email", {"not_from": {"pii": True}}, "email"),
    ("fct", "email", {"not_from": {"pii": "phone"}}, None),
    ("fct", "contact", {"not_from": {"pii": "phone"}}, "phone"),
    ("fct", "contact", {"not_from": {"pii": ["phone", "email"]}}, "phone"),
    ("fct", "net", {"not_from": {"pii": True, "columns": ["stg.phone"]}}, None),
    ("below", "amount", {"not_from": {"pii": True}}, "opaque cannot be analysed"),
    ("below", "amount", {"not_from": {"columns": ["raw_orders.phone"]}}, "opaque cannot be analysed"),
    ("below", "amount", {"comes_from": {"columns": ["raw_orders.amount"]}}, "not known"),
    ("below", "amount", {"comes_from": {"columns": ["raw_orders.nothing"]}}, "there is no such"),
    ("below", "amount", {"comes_from": {"columns": ["opaque.amount"], "only": True}}, None),
    ("below", "amount", {"comes_from": {"columns": ["fct.net"]}}, "does not come from fct.net"),
    ("of_source", "net", {"comes_from": {"columns": ["raw.built.net", "built.net"]}}, None),
    ("of_source", "net", {"comes_from": {"columns": ["stg.amount", "stg.qty"], "only": True}}, None),
    ("fct", "nett", {"not_from": {"pii": True}}, "did you mean net"),
]  # fmt: skip


def yml() -> str:
    models: dict[str, Any] = {name: {"name": name, "columns": []} for name in SQL}
    for place, (model, column, test, _) in enumerate(CASES):
        ((kind, arguments),) = test.items()
        declared = {"name": f"t{place:02}", "test_name": f"dbt_ripple.{kind}", **arguments}
        models[model]["columns"].append({"name": column, "data_tests": [declared]})
    # dbt merges no two entries of a column.
    for model in models.values():
        columns: dict[str, Any] = {}
        for column in model["columns"]:
            columns.setdefault(column["name"], []).extend(column["data_tests"])
        model["columns"] = [{"name": n, "data_tests": t} for n, t in columns.items()]
    return json.dumps({"version": 2, "models": list(models.values())})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Project]]:
    folder = tmp_path_factory.mktemp("lineage")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        files = {f"models/{name}.sql": text for name, text in SQL.items()}
        duck_project.make(folder, {**files, "models/m.yml": yml(), "models/s.yml": SOURCES})
        import duckdb

        with duckdb.connect(str(folder / "duck.duckdb")) as connection:
            connection.sql("create schema dev")
            connection.sql(
                "create table dev.raw_orders as select 1 as id, 2 as amount, 3 as qty,"
                " 'a@b' as email, '7' as phone"
            )
        dbt(folder, "run", "--select", "duck", "ripple_dim_snapshots")
        dbt(folder, "docs", "generate")
        yield folder, read_project(folder / "target")


def verdicts(project: Project) -> dict[str, list[str]]:
    tests = lineage_tests(project)
    judge = LineageJudge(project, analyse(project), [test.node for test in tests])
    return {
        project.nodes[test.unique_id].name: [p.reason.message for p in judge.judge(test).problems]
        for test in tests
    }


def test_before_the_first_load_dbt_says_that_nothing_is_tested(shop: tuple[Path, Project]) -> None:
    (result,) = dbt(shop[0], "test", "--select", "t05")
    assert str(result.status) == "pass"
    (result,) = dbt(shop[0], "--warn-error", "test", "--select", "t05")
    assert str(result.status) == "error"
    assert "no lineage of this project is loaded" in str(result.message)


def test_from_artifacts(shop: tuple[Path, Project]) -> None:
    verdict_of = verdicts(shop[1])
    for place, (*case, words) in enumerate(CASES):
        problems = verdict_of[f"t{place:02}"]
        assert (not problems) if words is None else any(words in one for one in problems), (
            case,
            problems,
        )


def test_from_the_tables(shop: tuple[Path, Project]) -> None:
    folder, project = shop
    loaded(folder, project, "a")
    results = dbt(folder, "test", "--select", "test_type:generic,package:duck", "--store-failures")
    status_of = {result.node.name: str(result.status) for result in results}
    wanted = {
        f"t{place:02}": "pass" if words is None else "fail"
        for place, (*_, words) in enumerate(CASES)
    }
    assert status_of == wanted
    ((result_rows,),) = rows(folder, "select problem from dev_dbt_test__audit.t02")
    assert result_rows == "comes from raw_orders.qty, too"
