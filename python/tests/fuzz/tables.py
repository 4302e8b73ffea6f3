"""The small tables that the fuzzer's queries read: NULLs, ties, duplicates, '1' and '01', -0.0."""

from __future__ import annotations

from typing import Final

import duckdb
from generators.schemas import OF_DIALECT, TABLES
from linked_tables import table_relation

from dbt_ripple.flow.containment import OpaqueRows
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.row_constraints import Facts, KnownConstraints, Proof, Unique, type_family

ROWS_OF: Final[dict[str, list[str]]] = {
    "a": [
        "(1, 1, 10, 'a', 0.5, true, '2024-01-01', '2024-01-01 10:00:00')",
        "(2, 1, 20, 'A', -0.0, false, '2024-02-29', '2024-02-29 00:00:00')",
        "(3, 2, 20, '1', 0.0, true, '2024-02-29', '2024-01-01 10:00:00')",
        "(4, 2, null, '01', 2.25, null, null, '2023-12-31 23:59:59')",
        "(5, 3, 0, '', null, false, '2023-12-31', null)",
        "(6, null, 1, null, 1.5, true, '2024-01-01', '2024-03-01 01:02:03')",
        "(7, 1, 10, 'a', 0.5, true, '2024-01-01', '2024-01-01 10:00:00')",
    ],
    "b": [
        "(1, 1, 5, 'a', 1.50, true, '2024-01-01', [1, 2, 3])",
        "(3, 2, 20, '01', 2.00, false, '2024-02-29', [2, null])",
        "(3, 2, 7, '1', 2.00, true, null, [])",
        "(8, 4, null, 'b', null, null, '2023-12-31', null)",
        "(null, null, 1, '', -1.25, false, '2024-01-15', [3, 1, 1])",
    ],
    "c": [
        """(1, 2, [1, 2], ['a', 'B'], {'x': 1, 'y': 'a'}, map {'a': 1, 'b': 2}, '{"a": 1, "A": "1"}',
            interval 1 day)""",
        """(2, 1, [3, 1, 1], ['01', null], {'x': 2, 'y': 'B'}, map {'b': null},
            '{"b": [1, {"a": "01"}]}', interval 1 month)""",
        "(2, 3, [], [], {'x': null, 'y': null}, map {}, '[1, 2, 1]', interval 90 minute)",
        "(null, null, null, null, null, null, null, null)",
    ],
    "t0": [
        "(1, 100, 1, 3, 1, 1e100, '9', true, null, '2024-01-01', interval 1 day)",
        "(2, null, 2, 1, 2, 1, 'b', false, true, '2024-02-01', interval 24 hours)",
        "(3, 7, null, 2, 3, -1e100, '91', null, false, '2024-03-01', interval 1 month)",
        "(4, 120, 4, 2, null, 2, 'c', true, true, null, interval 30 days)",
        "(5, -3, 1, 1, 1, null, null, false, false, '2024-02-01', null)",
        "(6, null, null, null, null, 0.5, '10', null, null, null, null)",
    ],
    "w0": ["(1, 10, '1')", "(2, null, '02')", "(2, 30, '3')", "(3, 1, null)"],
    "big0": [f"({k}, 'v{k * 7 % 13}', {k * 11 % 5})" for k in range(40)],
}


class UnknownTableError(LookupError):
    """A query reads something else than the small tables."""


def make_tables(connection: duckdb.DuckDBPyConnection, order: int = 0) -> None:
    """Make the tables; another `order` puts the same rows in other places."""
    for name, columns in OF_DIALECT["duckdb"].items():
        written = ", ".join(f"{c} {t}" for c, t in columns.items())
        connection.execute(f"create or replace table {name} ({written})")
        rows = ROWS_OF[name]
        if order == 1:
            rows = rows[::-1]
        elif order == 2:
            rows = rows[1::2] + rows[::2]
        connection.execute(f"insert into {name} values {', '.join(rows)}")
    connection.execute("create or replace macro upcased(a) as upper(a)")
    connection.execute("create or replace sequence numbers")


def make_every(connection: duckdb.DuckDBPyConnection) -> None:
    """One table with a column of each class of types, to try functions on."""
    connection.execute(
        "create or replace table every as select a.k, a.f, a.s, a.p, a.d, a.ts, c.l, c.z, c.st, c.m, "
        "c.j, c.iv from a positional join c where c.k is not null"
    )


SPARK_ROWS: Final[dict[str, list[str]]] = {
    "a": [
        r.replace("'2", "date '2", 1)
        .replace("-0.0", "-0.0D")  # a decimal has no sign of zero
        .replace(", '2024-", ", timestamp '2024-")
        .replace(", '2023-12-31 ", ", timestamp '2023-12-31 ")
        for r in ROWS_OF["a"]
    ],
    "b": [
        "(1, 1, 5, 'a', 1.50, true, date '2024-01-01', array(1, 2, 3))",
        "(3, 2, 20, '01', 2.00, false, date '2024-02-29', array(2, null))",
        "(3, 2, 7, '1', 2.00, true, null, array())",
        "(8, 4, null, 'b', null, null, date '2023-12-31', null)",
        "(null, null, 1, '', -1.25, false, date '2024-01-15', array(3, 1, 1))",
    ],
    "c": [
        "(1, 2, array(1, 2), array('a', 'B'), named_struct('x', 1, 'y', 'a'), map('a', 1, 'b', 2))",
        "(2, 1, array(3, 1, 1), array('01', null), named_struct('x', 2, 'y', 'B'), map('b', null))",
        "(2, 3, array(), array(), named_struct('x', null, 'y', null), map())",
        "(null, null, null, null, null, null)",
    ],
}


UNIQUE: Final = {"a": "id"}
"""What a passed test may have said: unique and without NULLs."""


def table(
    key: str,
    _: str,
    known_constraints: KnownConstraints | None = None,
    tables: dict[str, dict[str, str]] = TABLES,
) -> Relation:
    """A table as the linker is told of it; for a book, with what is known of its rows."""
    key = key.rpartition(".")[2]
    if key not in tables:
        raise UnknownTableError(key)
    columns = list(tables[key])
    relation = table_relation(key, columns)
    if known_constraints is not None:
        for column, fp in zip(columns, relation.fps, strict=True):
            known_constraints.typed(fp, type_family(tables[key][column]))
        facts = relation.facts = Facts(OpaqueRows(relation.rows.fp))
        if key in UNIQUE:
            fp = relation.fps[columns.index(UNIQUE[key])]
            proof = Proof(frozenset({"a_test"}), "by a test")
            facts.unique.append(Unique(frozenset({fp}), proof))
            facts.not_null[fp] = proof
    return relation
