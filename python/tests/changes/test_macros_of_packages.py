"""Which of a package's macros count for a node: those that dbt finds by name, or runs for it."""

from __future__ import annotations

import pytest
from hand_made import macro, node, project

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.artifacts.project import Metadata
from dbt_ripple.selection.select import select

OF_DBT = (
    macro("macro.dbt.materialization_incremental_default", "...", "macro.dbt.current_timestamp"),
    macro("macro.dbt.materialization_function_default", "..."),
    *(
        macro(f"macro.dbt.{name}", "...")
        for name in (
            *("current_timestamp", "default__current_timestamp", "drop_relation"),
            *("generate_schema_name", "default__generate_schema_name"),
            *("scalar_function_sql", "default__scalar_function_sql"),
        )
    ),
)


def world(*macros: Macro) -> Project:
    """A model of the project `p` and one of the package `q`, whose rows stay from run to run, each with a test."""
    nodes = [node("source.p.s.raw", columns=["id"])]
    for package in ("p", "q"):
        model = node(
            f"model.{package}.of_{package}",
            "select id from s.raw",
            "source.p.s.raw",
            config={"materialized": "incremental"},
        )
        test = node(
            f"test.p.test_{package}",
            f"select * from s.of_{package} where id is null",
            model.unique_id,
        )
        nodes += [model, test]
    made = project(*nodes, macros=[*OF_DBT, *macros])
    return made.having(metadata=Metadata(adapter_type="spark", project_name="p"))


@pytest.mark.parametrize(
    ("name", "selected"),
    [
        # dbt calls its own macro by this name, or that of the package of the node it builds.
        ("q.current_timestamp", ["test_q"]),
        # It dispatches to this one, and adapters run that one.
        ("q.default__current_timestamp", ["test_p", "test_q"]),
        ("q.drop_relation", ["test_p", "test_q"]),
        ("p.current_timestamp", ["test_p", "test_q"]),
        # What names relations: a package's for that package.
        ("q.generate_schema_name", ["test_q"]),
        ("q.default__generate_schema_name", ["test_p", "test_q"]),
        ("p.generate_schema_name", ["test_p", "test_q"]),
        # What builds functions builds no model.
        ("p.spark__scalar_function_sql", []),
        ("q.not_called", []),
    ],
)
def test_a_macro_counts_for_the_nodes_that_may_run_it(name: str, selected: list[str]) -> None:
    there = world(macro(f"macro.{name}", "select 1"))
    edited = world(macro(f"macro.{name}", "select 2"))
    assert sorted(test.name for test in select(there, edited).tests) == selected


def test_what_a_macro_of_the_projects_calls_by_a_packages_name_counts() -> None:
    calls = macro("macro.p.drop_relation", "{{ q.helper() }}", "macro.q.helper")
    there, edited = (world(calls, macro("macro.q.helper", f"select {n}")) for n in (1, 2))
    assert sorted(test.name for test in select(there, edited).tests) == ["test_p", "test_q"]
