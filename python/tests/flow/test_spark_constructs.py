"""Constructs of Spark and Databricks of which no two may be taken for one."""

from __future__ import annotations

import pytest
from linked_tables import table_relation

from dbt_ripple.flow.canonical import canonical
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

OTHER = [
    (
        "select to_json(struct(o.id, *)) as x from (select a, b from t) as q, (select 1 as id) as o",
        "select to_json(struct(o.id, *)) as x from t as q, (select 1 as id) as o",
    ),
    ("select a from (select a, stack(2, 1, 2) from t)", "select a from (select a from t)"),
    (
        "select a from (select a, inline(array(struct(1, 2), struct(3, 4))) from t)",
        "select a from t",
    ),
    (
        "select cast(s as string collate utf8_lcase) = 'A' as x from t",
        "select cast(s as string collate unicode) = 'A' as x from t",
    ),
]
NOT_FOLLOWED = ["select id from t@v1", "select id from t@v1 where a > 1"]


def table(*_: str) -> Relation:
    return table_relation("t", ["id", "a", "b", "s"])


def fingerprints(sql: str) -> list[tuple[bytes, ...] | None]:
    """The fingerprints of a query, as it is and in the form of the second comparison."""
    linked = link(lower(sql, "spark"), table, "spark")
    assert not linked.missing
    form = canonical(sql, "spark", linked, table)
    relations = [linked.relation, form.linked.relation if form is not None else None]
    return [None if r is None else (r.rows.fp, *r.fps) for r in relations]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_what_differs_is_not_taken_for_one(one: str, other: str) -> None:
    for a, b in zip(fingerprints(one), fingerprints(other), strict=True):
        assert a is None or a != b


@pytest.mark.parametrize("sql", NOT_FOLLOWED)
def test_an_older_version_of_a_table_is_not_the_table(sql: str) -> None:
    assert lower(sql, "databricks").rel is None
