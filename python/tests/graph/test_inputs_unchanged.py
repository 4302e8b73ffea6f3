"""What is given is not written into: neither projects and analyses, nor the process around them."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest
import sqlglot
from hand_made import check, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import CatalogColumn, Project
from dbt_ripple.artifacts.project import Later
from dbt_ripple.changes import compare
from dbt_ripple.changes.comparability import with_variables
from dbt_ripple.changes.compiled_sql_reuse import as_not_deferred
from dbt_ripple.changes.diff import diff
from dbt_ripple.flow.lower import lower
from dbt_ripple.governance.gate import gate_from
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.governance.ripple_yml import Config
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.selection.select import select_from

RAW, STG, MART = "source.p.s.raw", "model.p.stg", "model.p.mart"


def shop(stg: str | None = "select id, amount from s.raw", **metadata: Any) -> Project:
    made = project(
        node(RAW),
        node(
            STG,
            stg,
            RAW,
            raw="select id, amount from {{ source('s', 'raw') }} -- {{ env_var('DBT_ENV_CUSTOM_ENV_X') }}",
            config={
                "post-hook": [
                    {"sql": "grant {{ env_var('DBT_ENV_CUSTOM_ENV_X') }} to {{ var('who') }}"}
                ]
            },
        ),
        node(MART, "select id, amount, unread from s.stg", STG),
        check("t", "select id from s.mart where amount < 0", MART),
        catalog={RAW: ["id", "amount"]},
    )
    made.metadata.env = metadata.get("env", {})
    return made


def digests(of: Project) -> Any:
    content = asdict(analyse(of))
    del content["seconds"]
    return {name: list(value) if name == "edges" else value for name, value in content.items()}


HEADS: dict[str, Callable[[], Project]] = {
    "the same": shop,
    "an edit": lambda: shop("select id, amount * 2 as amount from s.raw"),
    "a broken reader": lambda: shop("select id from s.raw"),
    "another environment": lambda: shop(env={"X": "2"}),
    "not compiled": lambda: shop(None),
}


@pytest.mark.parametrize("of_head", HEADS)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_a_comparison_leaves_both_sides_as_they_were_read(of_head: str, turned: bool) -> None:
    sides = shop(env={"X": "1"}), HEADS[of_head]()
    base, head = sides[::-1] if turned else sides
    before = copy.deepcopy((base, head))
    alone = digests(base), digests(head)
    assert (digests(head), digests(base)) == alone[::-1]
    assert (base, head) == before
    analyses = analyse(base), analyse(head)
    kept = copy.deepcopy(analyses)
    for given in ({}, {"base_analysis": analyses[0], "head_analysis": analyses[1]}):
        comparison = compare(base, head, **given)  # type: ignore[arg-type]
        select_from(comparison, assume_passed=True)
        diff(comparison)
        gate_from(comparison, Config())
        assert (base, head) == before
        assert [asdict(side) for side in analyses] == [asdict(side) for side in kept]
        assert (digests(base), digests(head)) == alone


def test_what_a_comparison_knows_is_laid_over_both_sides() -> None:
    base, head = shop(env={"X": "1"}), shop(env={"X": "2"})
    comparison = compare(base, head)
    assert (base.environment, head.environment) == ({}, {})
    assert comparison.base.environment == {"DBT_ENV_CUSTOM_ENV_X": "1"}
    assert comparison.head.environment == {"DBT_ENV_CUSTOM_ENV_X": "2"}
    told = with_variables(base, head, {"who": "a"}, {"who": "b"})
    assert [side.variables for side in (*told, base, head)] == [
        {"who": "a"},
        {"who": "b"},
        None,
        None,
    ]


@pytest.mark.parametrize(
    "change", [Change("drop", "amount"), Change("rename", "unread", "x"), Change("remove")]
)
def test_a_change_that_nobody_made_leaves_no_trace(change: Change) -> None:
    of = shop()
    analysis = analyse(of)
    before, kept = copy.deepcopy(of), copy.deepcopy(analysis)
    node_ = of.nodes[MART if change.column == "unread" else STG]
    first = impact(of, node_, [change], analysis=analysis)
    assert of == before
    assert asdict(analysis) == asdict(kept)
    assert impact(of, node_, [change], analysis=analysis) == first


def test_what_is_read_late_is_read_once() -> None:
    asked: list[int] = []

    def catalog() -> dict[str, list[CatalogColumn]]:
        asked.append(1)
        return {}

    of = Project(
        target_path="", metadata=shop().metadata, nodes={}, parents={}, children={}, catalog=catalog
    )
    over = of.having(blind=frozenset({"x"}))
    assert (over.catalog, over.having(nodes={}).catalog, of.catalog, asked) == ({}, {}, {}, [1])
    assert (of.blind, over.blind) == (frozenset(), frozenset({"x"}))
    assert isinstance(vars(Project)["catalog"], Later)
    with pytest.raises(AssertionError):
        of.having(no_field=1)


@pytest.mark.parametrize("name", ["nodes", "catalog", "run_results", "variables"])
def test_nothing_writes_into_a_project_that_was_read(name: str) -> None:
    of = shop()
    with pytest.raises(FrozenInstanceError):
        setattr(of, name, {})
    assert of == shop()


def test_head_with_own_names_where_it_was_deferred_is_laid_over_what_was_read() -> None:
    base, head = shop(), shop("select id from s.raw")
    for side, schema in ((base, "prod"), (head, "ci")):
        side.nodes[STG] = replace(side.nodes[STG], relation_name=f"{schema}.stg")
        side.nodes[MART] = replace(side.nodes[MART], compiled_code="select id from prod.stg")
    assert as_not_deferred(base, head) is head
    head = head.having(run_args={"defer": True})
    before = copy.deepcopy(head)
    named = as_not_deferred(base, head)
    assert named.nodes[MART].compiled_code == "select id from ci.stg"
    assert head == before


def around() -> tuple[object, ...]:
    return sys.getrecursionlimit(), gc.get_threshold(), gc.isenabled(), sqlglot.parse_one


def test_an_analysis_leaves_the_process_as_it_was() -> None:
    before = around()
    compare(shop(), shop("select id from s.raw"))
    lower("select cast(a as varchar(3)) from t", "spark")
    lower("select (", "spark")
    lower("select " + "(" * 5000, "duckdb")
    assert around() == before


IMPORTS = """
import gc, importlib, pkgutil, sys
import sqlglot
from sqlglot import exp, parsers, generators, dialects
import sqlglot.dialects.dialect

def seen():
    ids = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "sqlglot" and module is not None:
            for key, value in vars(module).items():
                if not key.startswith("__"):
                    ids[name, key] = id(value)
                    if isinstance(value, type) and value.__module__ == name:
                        ids |= {(name, key, k): id(v) for k, v in vars(value).items()}
    return ids

for module in pkgutil.walk_packages(sqlglot.__path__, "sqlglot."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass
before = seen(), sys.getrecursionlimit(), gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()
import dbt_ripple
for module in pkgutil.walk_packages(dbt_ripple.__path__, "dbt_ripple."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
after = seen(), sys.getrecursionlimit(), gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()
changed = [key for key, value in before[0].items() if after[0].get(key) != value]
assert len(before[0]) > 1000, len(before[0])
assert not changed, changed
assert before[1:] == after[1:], (before[1:], after[1:])
"""


def test_importing_the_package_changes_nothing_outside_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
