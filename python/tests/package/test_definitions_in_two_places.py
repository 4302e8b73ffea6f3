"""`duplicate_definitions` and `competing_definitions`: exactly the pairs, and in execution too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, loaded, rows
from hand_made import LISTED, RAW, node, orders, project
from msgspec.structs import replace
from semantic_world import semantic_model, simple

from dbt_ripple.artifacts import Node

pytestmark = pytest.mark.slow

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "a_copy": ("with x as (select * from s.orders) select x.id as k, x.amount*2 as n from x", {}),
    "b_kpi": ("select id, amount * 2 as net from s.orders", {"canonical": True, "owner": "ann"}),
    "c_part": ("select amount * 2 as net2 from s.orders where id > 1", {}),
    "d_reader": ("select id, net, 1 as one from s.b_kpi", {"certified": True}),
    "e_other": ("select id, amount * 3 as NET from s.orders", {"certified": True}),
    "f_above": ("select id, net + 0 as net from s.e_other", {"certified": True}),
    "g_counts": ("select status, count(*) as c, 1 as one from s.orders group by status", {}),
    "h_counts": ("select o.status, count(*) as number from s.orders o group by 1", {}),
    "i_python": ("select amount * 2 as net from s.orders", {}),
    "k_chance": ("select amount * random() as r from s.orders", {}),
    "l_chance": ("select amount * random() as r from s.orders", {}),
    "m_joined": (
        "select o.amount * 2 as net3 from s.orders p left join s.orders o on p.id = o.amount",
        {},
    ),
    "j_names": ("select id, amount * 4 as net from s.orders", {}),
}


METRICS = {
    "net_sum": ("Net revenue", "net_total", {}),
    "net_again": ("net revenue ", "net_total", {}),  # the same in all but its name
    "net_count": ("Net Revenue", "net_rows", {"canonical": True, "owner": "ann"}),
    "other": ("NET_SUM", "net_rows", {}),  # is called as the first one's name is
    "alone": ("Something else", "net_rows", {}),
}


def metrics() -> list[Node]:
    """A semantic model and metrics over it: name -> its label, its measure and its meta."""
    measures = [
        {"name": "net_total", "agg": "sum", "expr": "net"},
        {"name": "net_rows", "agg": "count", "expr": "net"},
    ]
    made: list[Node] = [
        semantic_model("kpis", "model.p.b_kpi", measures=measures, entities=[], dimensions=[])
    ]
    for name, (label, measure, meta) in METRICS.items():
        made.append(replace(simple(name, measure, "kpis"), label=label, meta=meta))
    return made


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("twins")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        duck_project.make(folder, {})
        dbt(folder, "run", "--select", "ripple_dim_snapshots")
        models = [
            node(
                f"model.p.{name}",
                sql,
                *(f"model.p.{other}" for other in MODELS if f"s.{other}" in sql),
                *([RAW] if "s.orders" in sql else []),
                meta=meta,
                language="python" if name == "i_python" else "sql",
            )
            for name, (sql, meta) in MODELS.items()
        ]
        made = project(orders(), *models, *metrics(), catalog=LISTED, adapter="duckdb")
        made.metadata.generated_at = datetime.now(UTC)
        made = made.having(digest="one")
        loaded(folder, made, "a")
        wanted = ("+ripple_duplicate_definitions", "+ripple_competing_definitions")
        results = dbt(folder, "run", "--select", *wanted)
        assert results and {str(r.status) for r in results} == {"success"}
        yield folder


def test_duplicates(told: Path) -> None:
    result_rows = rows(
        told,
        "select node_name, column_name, twin_name, twin_column, twin_owner, twin_canonical,"
        " same_rows from dev_ripple.ripple_duplicate_definitions order by node_name, column_name",
    )
    assert result_rows == [
        ("a_copy", "n", "b_kpi", "net", "ann", True, True),
        ("c_part", "net2", "b_kpi", "net", "ann", True, False),
        ("h_counts", "number", "g_counts", "c", None, False, True),
    ]


def test_what_is_named_has_the_same_values(told: Path) -> None:
    pairs = rows(
        told,
        "select node_name, column_name, twin_name, twin_column from"
        " dev_ripple.ripple_duplicate_definitions where same_rows",
    )
    with duckdb.connect() as connection:
        connection.sql("create schema s")
        connection.sql(
            "create table s.orders as select * from (values (1, 10, 'a'), (2, null, 'a'),"
            " (3, 7, null)) as t(id, amount, status)"
        )
        for name, column, twin, twin_column in pairs:
            values = [
                sorted(connection.sql(f"select {c} from ({MODELS[m][0]})").fetchall(), key=repr)
                for m, c in ((name, column), (twin, twin_column))
            ]
            assert values[0] == values[1]
    assert len(pairs) == 2


def test_competing_definitions(told: Path) -> None:
    result_rows = rows(
        told,
        "select node_name, column_name, expression, other_name, other_expression, canonical_is,"
        " difference from dev_ripple.ripple_competing_definitions order by node_name",
    )
    kpi = ("b_kpi", "amount * 2", "b_kpi is canonical", "another expression")
    assert result_rows == [
        ("e_other", "NET", "amount * 3", *kpi),
        ("f_above", "net", "net + 0", *kpi),
        # Of one label, two that are the same are both not the canonical one.
        *(
            (
                *(name, name, "net_total"),
                *("net_count", "net_rows", "net_count is canonical", "another expression"),
            )
            for name in ("net_again", "net_sum")
        ),
        (
            *("other", "other", "net_rows"),
            *("net_sum", "net_total", "none is canonical", "another expression"),
        ),
    ]
