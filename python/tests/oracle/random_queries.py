"""The fuzzer's Spark grammar over the fixtures' tables, for the agreement with Catalyst.

Few functions, but every clause: what is easy to get wrong are names (aliases that shadow columns, USING,
stars, grouping by alias and position), correlation, set operations, windows over groups, laterals.
"""

from __future__ import annotations

from typing import Final

from generators.catalogue import Call, Catalogue
from generators.grammar import write
from generators.schemas import Column
from generators.spark_grammar import SparkGrammar

FUNCTIONS: Final = (
    *(Call(f, "aggregate", ("int",), "int") for f in ("sum", "max", "min", "count", "any_value")),
    Call("avg", "aggregate", ("int",), "num"),
    Call("max", "aggregate", ("str",), "str"),
    Call("collect_list", "aggregate", ("int",), "list"),
    Call("row_number", "window", (), "int"),
    Call("rank", "window", (), "int"),
    Call("lag", "window", ("int",), "int"),
    Call("abs", "scalar", ("int",), "int"),
    Call("cast_bigint", "scalar", ("=cast({int} as bigint)",), "int", whole=True),
    Call("concat", "scalar", ("str", "str"), "str"),
)
CATALOGUE: Final = Catalogue()
for _call in FUNCTIONS:
    CATALOGUE.add(_call)


class OverFixtures(SparkGrammar):
    """Writes a query over tables of tests/fixtures/lineage/tables.sql."""

    tables: Final[dict[str, list[Column]]] = {
        "p": [("id", "int"), ("a", "int"), ("b", "int")],
        "q": [("id", "int"), ("c", "int")],
        "v": [("id", "int"), ("n", "int")],
        "u": [("id", "int"), ("c", "int"), ("k", "str")],
        "months": [("k", "str"), ("jan", "int"), ("feb", "int"), ("mar", "int")],
    }
    names = ("id", "a", "b", "c", "n", "k", "x", "y", "z", "o")
    types = ("int",) * 6 + ("str", "str", "bool")
    all_types = (*types, "num", "list")
    budget = 160
    text_forms = range(11)
    depths = (2, 2, 3)
    shares = (7, 8, 9)
    deep = 3
    joins = (0, 1, 1, 1, 2)
    using = 0.5
    subqueries = 0.3
    # What is not followed, and said: levels of a recursion, and the columns that `inline` makes.
    recursion_levels = ("",)
    generators = (0, 1, 2, 4, 5)


def statement(number: int) -> str:
    """A query; the same number writes the same one."""
    return write(CATALOGUE, number, None, OverFixtures)[0]
