"""`struct.*`: the fields of a struct whose type is known, from the catalog or from the query."""

from __future__ import annotations

import duckdb
import pytest
from linked_tables import table_relation

from dbt_ripple.flow.data_types import fields_of_type
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

TYPES = {
    "duckdb": "STRUCT(a INTEGER, B STRUCT(x INTEGER))",
    "spark": "struct<a:int,B:struct<x:int>>",
    "bigquery": "STRUCT<a INT64, B STRUCT<x INT64>>",
    "trino": "ROW(a INTEGER, B ROW(x INTEGER))",
}


def linked(sql: str, dialect: str, typed: bool = True) -> Linked:
    def table(key: str, _: str) -> Relation:
        relation = table_relation(key, ["s", "k", "v"])
        fields = fields_of_type(TYPES[dialect], dialect)
        if typed and fields is not None:
            relation.fields = {"s": fields}
        return relation

    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    return link(lowered, table, dialect)


SAME = [
    ("duckdb", "select s.* from st", "select s.a, s.B from st"),
    ("duckdb", "select s.*, k from st", "select s.a, s.B, k from st"),
    ("duckdb", "select s.* exclude (a) from st", "select s.B from st"),
    ("duckdb", "select s.* rename (a as z) from st", "select s.a as z, s.B from st"),
    ("duckdb", "select s.* replace (k as a) from st", "select k as a, s.B from st"),
    ("duckdb", "with q as (select s from st) select s.* from q", "select s.a, s.B from st"),
    ("duckdb", "with q as (select s as z from st) select z.* from q", "select s.a, s.B from st"),
    ("duckdb", "with q as (select * from st) select s.* from q", "select s.a, s.B from st"),
    (
        "duckdb",
        "with q as (select s.* from st) select B.* from q",
        "with q as (select s.B as B from st) select B.x from q",
    ),
    (
        "duckdb",
        "select x.* from (select {'a': v, 'C': k} as x from st) as q",
        "select x.a, x.C from (select {'a': v, 'C': k} as x from st) as q",
    ),
    (
        "duckdb",
        "select x.* from (select struct_pack(a := v, c := s) as x from st) as q",
        "select x.a, x.c from (select struct_pack(a := v, c := s) as x from st) as q",
    ),
    (
        "duckdb",
        "select x.* from (select cast(null as struct(p int, q int)) as x) as q",
        "select x.p, x.q from (select cast(null as struct(p int, q int)) as x) as q",
    ),
    ("spark", "select s.* from st", "select s.a, s.B from st"),
    ("spark", "select t.s.* from st as t", "select s.a, s.B from st"),
    ("spark", "select s.B.* from st", "select s.B.x from st"),
    (
        "spark",
        "select q.* from (select struct(v, k as z) as q from st)",
        "select q.v, q.z from (select struct(v, k as z) as q from st)",
    ),
    (
        "spark",
        "select q.* from (select named_struct('p', v) as q from st)",
        "select q.p from (select named_struct('p', v) as q from st)",
    ),
    ("bigquery", "select s.* from st", "select s.a, s.B from st"),
    ("bigquery", "select s.B.* from st", "select s.B.x from st"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "star", "spelled"), SAME)
def test_a_star_of_a_struct_is_its_fields(dialect: str, star: str, spelled: str) -> None:
    one, other = (linked(sql, dialect) for sql in (star, spelled))
    assert one.relation.unlisted == []
    assert one.missing == other.missing == []
    assert one.relation.keys == other.relation.keys
    assert one.relation.fps == other.relation.fps
    assert [c.deps for c in one.relation.columns] == [c.deps for c in other.relation.columns]


@pytest.mark.parametrize(("dialect", "star", "spelled"), [c for c in SAME if c[0] == "duckdb"])
def test_duckdb_gives_the_same(dialect: str, star: str, spelled: str) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute("create table st as select {'a': 1, 'B': {'x': 2}} as s, 5 as k, 6 as v")
        one = connection.sql(star)
        other = connection.sql(spelled)
        assert [c.lower() for c in one.columns] == [c.lower() for c in other.columns]
        assert [c.lower() for c in one.columns] == linked(star, dialect).relation.keys
        assert one.fetchall() == other.fetchall()


def test_unnest_of_a_struct_is_its_fields_on_duckdb() -> None:
    relation = linked("select unnest(s), k from st", "duckdb").relation
    assert (relation.names, relation.unlisted) == (["a", "B", "k"], [])


def test_both_branches_of_a_union_tell() -> None:
    union = "select s.* from (select s from st union all select {0} from st) as q"
    assert linked(union.format("s"), "duckdb").relation.unlisted == []
    assert len(linked(union.format("null"), "duckdb").relation.unlisted) == 1


def test_what_is_left_out_of_an_unknown_struct_is_left_out() -> None:
    sql = "select to_json(q) as j from (select s.* exclude ({0}) from st) as q"
    one, other = (linked(sql.format(n), "duckdb", typed=False).relation for n in ("a", "b"))
    assert one.fps != other.fps
    replaced = "select a from (select s.* replace ({0} as a) from st) as q"
    one, other = (linked(replaced.format(n), "duckdb", typed=False).relation for n in ("k", "v"))
    assert one.fps != other.fps


def test_a_field_that_is_not_there_is_missing() -> None:
    assert linked("select z from (select s.* from st) as q", "duckdb").missing == ["z"]
    assert linked("select z from (select s.* from st) as q", "duckdb", typed=False).missing == []


@pytest.mark.parametrize("dialect", TYPES)
def test_types_of_catalogs(dialect: str) -> None:
    assert fields_of_type(TYPES[dialect], dialect) == [("a", None), ("B", [("x", None)])]
