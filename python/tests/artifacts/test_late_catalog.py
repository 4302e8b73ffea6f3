"""What is asked of a catalog without decoding it."""

from __future__ import annotations

import json
from pathlib import Path

from dbt_ripple.artifacts import catalog_may_contain
from dbt_ripple.artifacts.catalog import CatalogColumns
from dbt_ripple.graph.relations import STRUCTS_IN_JSON


def late(types: dict[str, str], *, ascii_only: bool = True) -> CatalogColumns:
    nodes = {
        name: {"columns": {"c": {"name": "c", "index": 1, "type": type_}}}
        for name, type_ in types.items()
    }
    content = json.dumps({"nodes": nodes, "sources": {}}, ensure_ascii=ascii_only).encode()
    return CatalogColumns(content, Path("catalog.json"), types)


def test_a_struct_is_seen_in_any_case_and_other_types_are_not() -> None:
    columns = late(
        {"a": "STRUCT(x INTEGER)", "b": "Row(x bigint)", "c": "int", "d": "map<int,row>"}
    )
    seen = {u for u in columns if catalog_may_contain(columns, u, STRUCTS_IN_JSON)}
    assert seen == {"a", "b"}


def test_what_is_escaped_or_decoded_already_may_be_anything() -> None:
    columns = late({"a": "strüct", "b": "int"})
    assert catalog_may_contain(columns, "a", STRUCTS_IN_JSON)
    assert not catalog_may_contain(columns, "b", STRUCTS_IN_JSON)
    assert [c.type for c in columns["b"]] == ["int"]
    assert catalog_may_contain(columns, "b", STRUCTS_IN_JSON)


def test_a_relation_without_an_entry_has_no_structs() -> None:
    assert not catalog_may_contain(late({"a": "int"}), "z", STRUCTS_IN_JSON)


def test_of_another_mapping_nothing_is_certain() -> None:
    assert catalog_may_contain({"a": []}, "a", STRUCTS_IN_JSON)
