"""Annotations stand on the line that is meant, or on the first one: never on a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made import node, project
from msgspec.structs import replace

from dbt_ripple.artifacts.project import TestMetadata
from dbt_ripple.artifacts.source_locations import Places, line_of_name

SQL = """

-- amount is not here
with o as (
    select * from raw
)
select
    o.id,
    o.total as amount,
    {# code #} o.code,
    case when o.code = 'x' then o.kind end as kind
from o
"""
YML = """
models:
  - name: orders
    columns:
      - name: id
        data_tests:
          - unique
          - not_null
          - accepted_values:
              values: [1]
          - accepted_values:
              values: [1, 2]
      - name: Amount
  - name: others
    columns: [{name: id}]
sources:
  - name: raw
    tables:
      - name: orders
        columns:
          - name: id
            data_tests: [not_null]
exposures:
  - name: report
    label: orders
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("id", 6),
        ("amount", 7),  # the comment does not count
        ("code", 8),  # an output; elsewhere it stands in an expression
        ("kind", 9),
        ("o.kind", 9),
        ("nothing", None),
        ("o", None),
    ],
)
def test_a_column_in_sql(name: str, line: int | None) -> None:
    assert line_of_name(SQL.strip(), name) == line


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("select a from t\nunion all\nselect a from u", "a"),  # either of them
        ("select x as a from t\nunion all\nselect y as a from u", "a"),
        ("select t.a,\n u.a as b\nfrom t, u", "t.a"),  # one is another's
    ],
)
def test_what_can_stand_on_two_lines_stands_on_none(sql: str, name: str) -> None:
    assert line_of_name(sql, name) is None


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "orders.sql").write_text(SQL)
    (tmp_path / "models" / "_m.yml").write_text(YML)
    model = node("model.p.orders", raw=SQL.strip(), original_file_path="models/orders.sql")
    model = replace(model, patch_path="p://models/_m.yml")
    source = node("source.p.raw.orders", original_file_path="models/_m.yml", source_name="raw")
    report = node("exposure.p.report", original_file_path="models/_m.yml")

    def generic(name: str, kind: str, key: str, **more: object) -> None:
        test = node(f"test.p.{name}", "select 1", original_file_path="models/_m.yml", **more)
        test = replace(
            test, test_metadata=TestMetadata(name=kind), file_key_name=key, column_name="id"
        )
        tests.append(test)

    tests: list = []
    generic("a", "not_null", "models.orders")
    generic("b", "accepted_values", "models.orders")
    generic("c", "not_null", "sources.raw", sources=[["raw", "orders"]])
    elsewhere = node("model.other.x", original_file_path="models/orders.sql")
    side = project(model, source, report, *tests, elsewhere)
    side.metadata.project_name = "p"
    gone = node("model.p.gone", original_file_path="models/gone.sql")
    places = Places(side, project(gone), Path())

    def at(*arguments: object) -> tuple[str, int] | None:
        return places.of(*arguments)  # type: ignore[arg-type]

    sql, yml = "models/orders.sql", "models/_m.yml"
    assert at("model.p.orders") == (sql, 1)
    assert at("model.p.orders", "amount", "column_redefined") == (sql, 9)
    assert at("model.p.orders", None, "reader_broken", ["o.kind"]) == (sql, 11)
    assert at("model.p.orders", None, "owner_missing") == (yml, 3)
    assert at("model.p.orders", "amount", "pii_untagged") == (yml, 13)
    assert at("model.p.orders", "zip", "pii_untagged") == (yml, 3)
    assert at("source.p.raw.orders", "id", "source_drift") == (yml, 21)
    assert at("exposure.p.report") == (yml, 24)
    assert at("test.p.a") == (yml, 8)
    assert at("test.p.b") == (yml, 5)  # one of two: the column they are on
    assert at("test.p.c") == (yml, 22)
    assert at("model.other.x") is None  # another package's file
    assert at("model.p.gone") is None  # no such file any more
    assert at(None) is None

    # A file that is not what was judged has no certain line, nor one that cannot be read.
    (tmp_path / "models" / "other.sql").write_text(f"-- edited since\n{SQL.strip()} where 1 = 1")
    model = replace(model, original_file_path="models/other.sql")
    side.nodes[model.unique_id] = replace(model, raw_code=SQL.strip() + " where 2 = 2")
    assert at("model.p.orders", "amount", "column_redefined") == (yml, 13)
    side.nodes[model.unique_id] = replace(side.nodes[model.unique_id], patch_path=None)
    assert at("model.p.orders", "amount", "column_redefined") == ("models/other.sql", 1)
