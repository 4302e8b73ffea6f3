"""Rules 1-13, each with the edit that must select and the one that must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hand_made import LISTED, RAW, check, generic, macro, names, node, orders, picked, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Column, Node, Project
from dbt_ripple.artifacts.project import Ref
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.rendering.output import plain
from dbt_ripple.selection.select import select, state_modified

STG = "select id, amount, amount * 2 as twice, status from s.orders"
TESTS = (
    check("on_id", "select id from s.mart where id is null", "model.p.mart"),
    check("on_twice", "select twice from s.mart where twice is null", "model.p.mart"),
)


def shop(stg: str = STG, mart: str = "select id, twice from s.stg", **more: Any) -> Project:
    """orders -> stg -> mart, with a test of each of mart's columns."""
    return project(
        orders(),
        node("model.p.stg", stg, RAW, **more),
        node("model.p.mart", mart, "model.p.stg"),
        *TESTS,
        catalog=LISTED,
    )


# --- the shape of the answer ----------------------------------------------------------------------


def test_the_answer_has_the_documented_shape() -> None:
    answer = plain(picked(shop(), shop(STG.replace("* 2", "* 3"))))
    assert answer == {
        "tests": [
            {
                "unique_id": "test.p.on_twice",
                "name": "on_twice",
                "reason": "stg.twice changed",
                "reason_code": "column_changed",
                "reason_arguments": {"name": "stg", "column": "twice"},
                "path": ["model.p.stg.twice", "model.p.mart.twice", "test.p.on_twice"],
            }
        ],
        "proven": [],
        "blocked": [],
        "models": ["model.p.stg", "model.p.mart"],
        "broken": [],
        "exposures": [],
        "unit_tests": [],
        "opaque": [],
        "counts": {
            "impacted_tests": 1,
            "proven_tests": 0,
            "blocked_tests": 0,
            "state_modified_tests": 2,
            "all_tests": 2,
        },
        "notes": [],
        "causes": [
            {
                "kind": "code",
                "name": "stg",
                "before": STG,
                "after": STG.replace("* 2", "* 3"),
                "file": None,
                "line": None,
                "commit": None,
                "through": [],
                "nodes": ["model.p.stg"],
            }
        ],
        "notes_coded": [],
    }


def test_equal_sides_select_nothing() -> None:
    selection = picked(shop(), shop())
    assert not (
        selection.tests
        or selection.models
        or selection.unit_tests
        or selection.broken
        or selection.notes
    )
    assert selection.counts.state_modified_tests == 0


def test_analyses_that_are_at_hand_are_used() -> None:
    base, head = shop(), shop(STG.replace("* 2", "* 3"))
    selection = select(
        base, head, base_analysis=analyse(base), head_analysis=analyse(head), facts=False
    )
    assert selection == picked(base, head)


# --- values, rows, refactors ----------------------------------------------------------------------


def test_a_filter_selects_what_reads_the_rows() -> None:
    selection = picked(shop(), shop(STG + " where amount > 0"))
    assert [(t.name, str(t.reason)) for t in selection.tests] == [
        ("on_id", "rows of stg changed"),
        ("on_twice", "rows of stg changed"),
    ]


@pytest.mark.parametrize(
    "stg",
    [
        "select id, amount, amount*2 twice, status from s.orders -- the same",
        "with o as (select * from s.orders) select o.id, o.amount, o.amount * 2 as twice, o.status "
        "from o",
        STG + " x",
        STG.replace("status", "status, upper(status) as shouted"),
    ],
)
def test_a_refactor_selects_nothing(stg: str) -> None:
    assert names(shop(), shop(stg)) == []


def test_a_column_renamed_with_its_readers_selects_nothing() -> None:
    head = shop(STG.replace("twice", "doubled"), "select id, doubled as twice from s.stg")
    selection = picked(shop(), head)
    assert selection.tests == []
    assert selection.models == ["model.p.stg", "model.p.mart"]


def test_an_expression_moved_upstream_selects_nothing() -> None:
    base = shop("select id, amount from s.orders", "select id, amount * 2 as twice from s.stg")
    assert names(base, shop()) == []


def test_columns_of_a_table_in_another_order_are_built_anew() -> None:
    head = shop("select amount, id, amount * 2 as twice, status from s.orders")
    selection = picked(shop(), head)
    assert (selection.tests, selection.models) == ([], ["model.p.stg"])


def test_a_view_turned_table_is_the_same_data() -> None:
    view = {"materialized": "view", "tags": ["daily"], "meta": {"owner": "me"}}
    assert names(shop(), shop(config=view)) == []


def test_another_schema_is_the_same_data() -> None:
    other = shop(STG.replace("s.orders", "dev.orders"), "select id, twice from dev.stg")
    for name in ("model.p.stg", "model.p.mart", RAW):
        other.nodes[name] = replace(
            other.nodes[name], schema="dev", relation_name=f"`dev`.`{name.split('.')[-1]}`"
        )
    for test in TESTS:
        moved = msgspec.structs.replace(
            test, compiled_code=(test.compiled_code or "").replace("s.mart", "dev.mart")
        )
        other.nodes[test.unique_id] = moved
    assert names(shop(), other) == []


# --- tests ----------------------------------------------------------------------------------------


def with_test(**more: Any) -> Project:
    return project(orders(), check("t", "select id from s.orders", RAW, **more), catalog=LISTED)


@pytest.mark.parametrize(
    "config",
    [
        {"severity": "WARN"},
        {"warn_if": ">10"},
        {"error_if": ">10"},
        {"limit": 5},
        {"fail_calc": "sum(id)"},
        {"store_failures": True},  # a table is made of what it returns, which may fail
        {"what_is_this": 1},
    ],
)
def test_a_tests_own_settings_select_it(config: dict[str, Any]) -> None:
    selection = picked(with_test(), with_test(config=config))
    assert [str(t.reason) for t in selection.tests] == [f"its own {next(iter(config))} changed"]


@pytest.mark.parametrize(
    "config",
    [
        {"tags": ["x"]},
        {"store_failures": False},
        {"meta": {"a": 1}},
        {"schema": "audit"},
        {"where": "1 = 1"},  # its compiled SQL says
        {"enabled": True, "docs": {"show": False}, "group": "g"},
    ],
)
def test_what_only_files_a_test_does_not(config: dict[str, Any]) -> None:
    assert names(with_test(), with_test(config=config)) == []


@pytest.mark.parametrize(
    ("stores", "selects"),
    [
        ({"store_failures": True}, True),
        ({"store_failures_as": "view"}, True),
        ({"store_failures": True, "store_failures_as": "ephemeral"}, False),
        ({"store_failures": False}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("name", ["alias", "database", "schema"])
def test_where_failures_are_stored_selects_a_test_that_stores_them(
    name: str, stores: dict[str, Any], selects: bool
) -> None:
    """The table that it makes may be there already, and be another one's."""
    base, head = (with_test(config={**stores, name: place}) for place in ("one", "other"))
    assert names(base, head) == (["t"] if selects else [])


def test_a_tests_own_query_selects_it() -> None:
    head = project(
        orders(), check("t", "select id from s.orders where id < 0", RAW), catalog=LISTED
    )
    assert [str(t.reason) for t in picked(with_test(), head).tests] == ["its own query changed"]


def test_names_of_a_tests_columns_matter_where_it_counts_by_them() -> None:
    def side(name: str, calc: str) -> Project:
        sql = f"select id as {name} from s.orders"
        return project(orders(), check("t", sql, RAW, config={"fail_calc": calc}), catalog=LISTED)

    assert names(side("n", "sum(n)"), side("m", "sum(n)")) == ["t"]
    assert names(side("n", "count(*)"), side("m", "count(*)")) == []


def test_a_new_test_is_selected_and_a_removed_one_is_not_missed() -> None:
    without = project(orders(), catalog=LISTED)
    assert [str(t.reason) for t in picked(without, with_test()).tests] == ["a new test"]
    assert names(with_test(), without) == []


def test_tests_of_a_model_under_another_name_are_new() -> None:
    head = project(
        orders(),
        node("model.p.stg", STG, RAW),
        node("model.p.fact", "select id, twice from s.stg", "model.p.stg"),
        check("fact_id", "select id from s.fact where id is null", "model.p.fact"),
        catalog=LISTED,
    )
    selection = picked(shop(), head)
    assert [t.name for t in selection.tests] == ["fact_id"]
    assert selection.models == ["model.p.fact"]


# --- broken, opaque, exposures --------------------------------------------------------------------


def test_a_column_that_is_gone_is_named_and_its_readers_are_selected() -> None:
    selection = picked(shop(), shop("select id, amount, status from s.orders"))
    assert [(b.unique_id, str(b.reason)) for b in selection.broken] == [
        ("model.p.mart", "cannot find twice: stg.twice is gone")
    ]
    assert [t.name for t in selection.tests] == ["on_id", "on_twice"]
    assert selection.models == ["model.p.stg", "model.p.mart"]


def test_what_was_broken_before_in_the_same_way_is_not_said_again() -> None:
    broken = shop(mart="select id, nothing as twice from s.stg")
    assert picked(broken, broken).broken == []


def test_an_opaque_node_changes_with_its_parents_and_is_named() -> None:
    def side(stg: str) -> Project:
        python = node("model.p.py", None, "model.p.stg", language="python", raw="def model(): ...")
        return project(
            orders(),
            node("model.p.stg", stg, RAW),
            python,
            check("t", "select x from s.py", "model.p.py"),
            catalog=LISTED,
        )

    selection = picked(side(STG), side(STG.replace("* 2", "* 3")))
    assert [t.name for t in selection.tests] == ["t"]
    assert [(o.unique_id, str(o.reason)) for o in selection.opaque] == [
        ("model.p.py", "a Python model")
    ]
    assert names(side(STG), side(STG + " -- the same")) == []


def test_columns_of_an_opaque_node_are_not_one_value() -> None:
    """Also where nothing lists them: in CI there is often no catalog."""

    def side(column: str, **more: Any) -> Project:
        return project(
            orders(),
            node("model.p.py", None, RAW, language="python", raw="def model(): ...", **more),
            node("model.p.mart", f"select {column} as id from s.py", "model.p.py"),
            check(
                "unique", "select id from s.mart group by id having count(*) > 1", "model.p.mart"
            ),
            catalog=LISTED,
        )

    for more in ({}, {"columns": ["x", "y"]}):
        assert names(side("x", **more), side("y", **more)) == ["unique"]
        assert names(side("x", **more), side("x", **more)) == []
    assert names(side("x"), side("x", columns=["x", "y"])) == []


def test_a_name_that_comes_to_mean_the_other_side_of_a_join() -> None:
    """DuckDB finds `status` in the query around once stg has none; an ASOF join then multiplies rows."""

    def side(join: str, stg: str) -> Project:
        right = "select id, status from s.stg"
        return project(
            orders(),
            node("model.p.stg", stg, RAW),
            node(
                "model.p.mart",
                f"select l.id from s.orders as l {join} ({right}) as r on l.id >= r.id",
                RAW,
                "model.p.stg",
            ),
            check(
                "unique", "select id from s.mart group by id having count(*) > 1", "model.p.mart"
            ),
            catalog=LISTED,
            adapter="duckdb",
        )

    both, one = "select id, status from s.orders", "select id from s.orders"
    assert names(side("asof left join", both), side("asof left join", one)) == ["unique"]
    assert names(side("left join", both), side("left join", one)) == []


def test_exposures_that_read_what_changed() -> None:
    def side(stg: str) -> Project:
        reads = {"meta": {"referenced_columns": ["mart.id"]}}
        made_node = node("exposure.p.said", None, "model.p.mart", **reads)
        silent = node("exposure.p.silent", None, "model.p.mart")
        base = shop(stg)
        return project(*base.nodes.values(), made_node, silent, catalog=LISTED)

    assert picked(side(STG), side(STG)).exposures == []
    assert picked(side(STG), side(STG.replace("* 2", "* 3"))).exposures == ["exposure.p.silent"]
    rows = picked(side(STG), side(STG + " where id > 0")).exposures
    assert rows == ["exposure.p.said", "exposure.p.silent"]


# --- critical, only, full -------------------------------------------------------------------------


def test_critical_adds_all_tests_of_impacted_critical_nodes() -> None:
    def side(stg: str, tier: str) -> Project:
        built = shop(stg)
        built.nodes["model.p.mart"] = replace(
            built.nodes["model.p.mart"], meta={"criticality": tier}
        )
        return built

    edited = STG.replace("* 2", "* 3")
    selection = picked(side(STG, "tier1"), side(edited, "tier1"), critical="tier1")
    assert [(t.name, str(t.reason)) for t in selection.tests] == [
        ("on_id", "mart is impacted and tier1"),
        ("on_twice", "stg.twice changed"),
    ]
    assert names(side(STG, "tier2"), side(edited, "tier2"), critical="tier1") == ["on_twice"]
    assert names(side(STG, "tier1"), side(STG, "tier1"), critical="tier1") == []


def test_only_restricts_what_is_listed() -> None:
    edited = shop(STG + " where id > 0")
    selection = picked(shop(), edited, only={"test.p.on_id", "model.p.stg"})
    assert [t.name for t in selection.tests] == ["on_id"]
    assert selection.models == ["model.p.stg"]
    assert selection.counts.impacted_tests == 1
    assert selection.counts.all_tests == 2


def test_full_is_state_modified_plus() -> None:
    selection = state_modified(shop(), shop(STG + " -- a comment"))
    assert [t.name for t in selection.tests] == ["on_id", "on_twice"]
    assert str(selection.tests[0].reason) == "downstream of stg, which dbt calls modified"
    assert selection.models == ["model.p.stg", "model.p.mart"]


# --- rule 7: config, hooks, macros ----------------------------------------------------------------

INCREMENTAL = {
    "materialized": "incremental",
    "incremental_strategy": "merge",
    "unique_key": "id",
}


def built(
    config: dict[str, Any],
    raw: str = "",
    macros: Any = (),
    sql: str = "select id, amount from s.orders",
    calls: Sequence[str] = (),
) -> Project:
    return project(
        orders(),
        node("model.p.a", sql, RAW, config=config, raw=raw or sql, macros=list(calls)),
        check("t", "select amount from s.a", "model.p.a"),
        catalog=LISTED,
        macros=macros,
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"unique_key": "amount"},
        {"incremental_strategy": "append"},
        {"on_schema_change": "append_new_columns"},
        {"merge_update_columns": ["amount"]},
        {"merge_some_new_setting": True},
        {"post-hook": [{"sql": "delete from {{ this }} where id = 1", "transaction": True}]},
        {"sql_header": "set timezone = 'UTC'"},
    ],
)
def test_settings_that_change_data_move_rows_and_values(changed: dict[str, Any]) -> None:
    base, head = built(INCREMENTAL), built({**INCREMENTAL, **changed})
    assert names(base, head) == ["t"]
    before, now = (analyse(side).nodes["model.p.a"] for side in (base, head))
    assert all(a != b for a, b in zip(before.fingerprints, now.fingerprints, strict=True))
    assert before.rows_fingerprint != now.rows_fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        {"tags": ["x"]},
        {"grants": {"select": ["me"]}},
        {"persist_docs": {"relation": True}},
        {"file_format": "delta"},
        {"cluster_by": ["id"]},
        {"lookback": 3},
    ],
)
def test_settings_that_do_not_change_data(changed: dict[str, Any]) -> None:
    assert names(built(INCREMENTAL), built({**INCREMENTAL, **changed})) == []


def test_a_key_renamed_with_its_column_is_the_same_key() -> None:
    head = built({**INCREMENTAL, "unique_key": "key"}, sql="select id as key, amount from s.orders")
    assert names(built(INCREMENTAL), head) == []


RAW_INCREMENTAL = (
    "select id, amount from {{ source('raw', 'orders') }} -- all of them\n"
    "{% if is_incremental() %} where id > (select max(id) - 3 from {{ this }}) {% endif %}"
)


@pytest.mark.parametrize(
    ("old", "new", "selected"),
    [
        ("- 3", "- 4", ["t"]),
        (
            "{% if is_incremental() %} where id > (select max(id) - 3 from {{ this }}) {% endif %}",
            "",
            ["t"],
        ),
        ("-- all of them", "-- some", []),
        ("{% if is_incremental() %}", "{%  if is_incremental()\n%}   ", []),
        # White space control takes the line's end away: the branch is part of the comment.
        ("{% if is_incremental() %}", "{%- if is_incremental() -%}\n   ", ["t"]),
        ("all of them\n", "all of them ", ["t"]),
    ],
)
def test_the_branch_that_was_not_compiled_counts(old: str, new: str, selected: list[str]) -> None:
    base = built(INCREMENTAL, RAW_INCREMENTAL)
    assert old in RAW_INCREMENTAL
    assert names(base, built(INCREMENTAL, RAW_INCREMENTAL.replace(old, new))) == selected


def test_a_macro_in_that_branch_counts() -> None:
    raw = "select id, amount from x {% if is_incremental() %} where {{ recent() }} {% endif %}"

    def side(text: str) -> Project:
        return built(INCREMENTAL, raw, [macro("macro.p.recent", text)])

    base = side("{% macro recent() %} day > 3 {% endmacro %}")
    assert names(base, side("{% macro recent() %} day > 4 {% endmacro %}")) == ["t"]
    assert names(base, side("{% macro recent() %}{# note #} day > 3 {% endmacro %}")) == []
    # What a macro writes may stand in a literal, where white space is data.
    assert names(base, side("{% macro recent() %} day  > 3 {% endmacro %}")) == ["t"]


def test_a_macro_that_asks_by_itself_counts() -> None:
    def side(text: str) -> Project:
        recent = macro("macro.p.recent", text, "macro.dbt.is_incremental")
        raw = "select id, amount from x {{ recent() }}"
        return built(INCREMENTAL, raw, [recent], calls=["macro.p.recent"])

    text = "{% macro recent() %}{% if is_incremental() %} where day > 3 {% endif %}{% endmacro %}"
    assert names(side(text), side(text.replace("3", "4"))) == ["t"]
    assert names(side(text), side(text.replace(" where", "  where"))) == []


def test_a_macro_that_a_hook_calls_counts() -> None:
    def built_with(text: str) -> Project:
        hook = {"sql": "{{ tidy(this) }}"}
        return built({"post-hook": [hook]}, "", [macro("macro.p.tidy", text)])

    base = built_with("{% macro tidy(x) %} delete from {{ x }} {% endmacro %}")
    edited = built_with("{% macro tidy(x) %} truncate {{ x }} {% endmacro %}")
    assert names(base, edited) == ["t"]
    assert names(base, built_with("{% macro tidy(x) %}  delete from {{ x }} {% endmacro %}")) == []


def test_a_hook_that_reads_another_model_changes_with_it() -> None:
    def side(other: str, hook: str) -> Project:
        return project(
            orders(),
            node("model.p.other", other, RAW),
            node(
                "model.p.a",
                "select id from s.orders",
                RAW,
                *(["model.p.other"] if "other" in hook else []),
                config={"post-hook": [{"sql": hook}]},
            ),
            check("t", "select id from s.a", "model.p.a"),
            catalog=LISTED,
        )

    reads = "delete from {{ this }} where id in (select id from {{ ref('other') }})"
    old, new = "select id, amount from s.orders", "select id, amount + 1 as amount from s.orders"
    assert names(side(old, reads), side(new, reads)) == ["t"]
    assert names(side(old, "select 1"), side(new, "select 1")) == []


def test_an_enforced_type_is_a_cast() -> None:
    def side(type_: str, enforced: bool = True) -> Project:
        return project(
            orders(),
            node(
                "model.p.a",
                "select id, amount from s.orders",
                RAW,
                columns={"id": "int", "amount": type_},
                config={"contract": {"enforced": enforced}},
            ),
            check("on_id", "select id from s.a", "model.p.a"),
            check("on_amount", "select amount from s.a", "model.p.a"),
            catalog=LISTED,
        )

    assert names(side("int"), side("bigint")) == ["on_amount"]
    assert names(side("int"), side("INT")) == []
    assert names(side("int", False), side("bigint", False)) == []


DBT = [
    macro("macro.dbt.create_table_as", "...", "macro.dbt.default__create_table_as"),
    macro("macro.dbt.default__create_table_as", "create table"),
    macro(
        "macro.dbt.materialization_table_default",
        "...",
        "macro.dbt.create_table_as",
        "macro.dbt.drop_relation",
    ),
    macro("macro.dbt.drop_relation", "drop"),
    macro("macro.dbt.get_columns_in_relation", "describe"),
    macro("macro.dbt.materialization_view_default", "..."),
    macro("macro.dbt.materialization_test_default", "...", "macro.dbt.get_test_sql"),
    macro("macro.dbt.get_test_sql", "select count(*)"),
    macro("macro.dbt.generate_schema_name", "..."),
]


@pytest.mark.parametrize(
    ("name", "selected"),
    [
        ("create_table_as", ["of_table"]),
        ("spark__create_table_as", ["of_table"]),
        ("materialization_table_spark", ["of_table"]),
        ("get_test_sql", ["of_table", "of_view"]),
        ("spark__drop_relation", ["of_table", "of_view"]),
        ("spark__get_columns_in_relation", ["of_table", "of_view"]),
        ("generate_schema_name", []),
        ("something_else", []),
    ],
)
def test_a_macro_that_stands_in_for_dbts_own(name: str, selected: list[str]) -> None:
    def side(text: str) -> Project:
        return project(
            orders(),
            node("model.p.a", "select id from s.orders", RAW),
            node("model.p.b", "select id from s.orders", RAW, config={"materialized": "view"}),
            check("of_table", "select id from s.a", "model.p.a"),
            check("of_view", "select id from s.b", "model.p.b"),
            catalog=LISTED,
            macros=[*DBT, macro(f"macro.p.{name}", text)],
        )

    assert names(side("one"), side("two")) == selected
    assert names(side("one"), side("one{# note #}")) == []


def test_a_changed_project_hook_that_is_not_followed_selects_everything_and_is_reported() -> None:
    def side(sql: str) -> Project:
        hook = node("operation.p.p-on-run-start-0", None, raw=sql)
        return project(*shop().nodes.values(), hook, catalog=LISTED)

    selection = picked(side("call refresh()"), side("call refresh(1)"))
    assert [t.name for t in selection.tests] == ["on_id", "on_twice"]
    assert selection.models == ["model.p.stg", "model.p.mart"]
    message = "(p-on-run-start-0 of p changed; if you know, list them in ripple.yml"
    (note,) = map(str, selection.notes)
    assert message in note and note.endswith("every test is selected")
    assert names(side("call refresh()"), side("call   refresh() -- x")) == []
    gone = picked(side("call refresh()"), shop())
    assert message.replace("changed", "was removed") in str(gone.notes[0])


def test_a_function_is_part_of_what_calls_it() -> None:
    def side(body: str) -> Project:
        return project(
            orders(),
            node("function.p.f", None, raw=body),
            node("model.p.a", "select s.f(id) as x from s.orders", RAW, "function.p.f"),
            check("t", "select x from s.a", "model.p.a"),
            catalog=LISTED,
        )

    assert names(side("x + 1"), side("x + 2")) == ["t"]
    assert names(side("x + 1"), side("x  + 1 -- one more")) == []


def test_a_changed_function_is_built_with_what_calls_it() -> None:
    """Or the model would call production's function, and its tests would pass."""

    def side(*functions: Node) -> Project:
        called = [function.unique_id for function in functions]
        return project(
            orders(),
            *functions,
            node("model.p.a", "select s.f(id) as x from s.orders", RAW, *called),
            check("t", "select x from s.a", "model.p.a"),
            catalog=LISTED,
        )

    one = node("function.p.f", None, raw="x + 1")
    other = node("function.p.f", None, raw="x + 2")
    outer = node("function.p.g", None, "function.p.f", raw="s.f(x)")
    assert picked(side(one), side(one)).models == []
    assert picked(side(one), side(other)).models == ["function.p.f", "model.p.a"]
    assert picked(side(), side(one)).models == ["function.p.f", "model.p.a"]
    built = picked(side(one, outer), side(other, outer)).models
    assert built == ["function.p.f", "function.p.g", "model.p.a"]
    reader = node("function.p.f", None, RAW, raw="select max(id) from s.orders")
    moved = replace(orders(), relation_name="s.other", identifier="other")
    head = side(reader)
    assert picked(side(reader), head.having(nodes={**head.nodes, RAW: moved})).models == [
        "function.p.f",
        "model.p.a",
    ]


# --- sources --------------------------------------------------------------------------------------


def at(**where: Any) -> Project:
    source = replace(orders(), **where)
    relation = f"{source.schema}.{source.identifier}"
    source = replace(source, relation_name=relation)
    return project(source, check("t", f"select id from {relation}", RAW), catalog=LISTED)


def test_a_source_is_where_the_project_says_it_is() -> None:
    assert names(at(), at(identifier="orders_v2")) == ["t"]
    literal = {"schema": "raw", "unrendered_schema": "raw"}
    assert names(at(**literal), at(schema="raw2", unrendered_schema="raw2")) == ["t"]
    by_var = {"schema": "raw", "unrendered_schema": "{{ var('raw') }}"}
    assert names(at(**by_var), at(**{**by_var, "schema": "raw2"})) == ["t"]
    by_target = {"schema": "prod_raw", "unrendered_schema": "{{ target.schema }}_raw"}
    assert names(at(**by_target), at(**{**by_target, "schema": "dev_raw"})) == []


# --- rule 9: unit tests ---------------------------------------------------------------------------


def unit(
    stg: str = STG,
    mart: str = "select id, twice from s.stg",
    given: Any = None,
    types: dict[str, str] | None = None,
    **more: Any,
) -> Project:
    test: Node = node("unit_test.p.mart.u", None, "model.p.mart", **more)
    rows = given or [{"id": 1, "twice": 2}]
    fixture = [{"input": "ref('stg')", "rows": rows}]
    test = replace(test, model="mart", given=fixture, expect={"rows": [{"id": 1}]})
    built = shop(stg, mart)
    catalog_types = {"model.p.stg": types} if types else None
    return project(*built.nodes.values(), test, catalog=LISTED, types=catalog_types)


def units(base: Project, head: Project) -> list[str]:
    return picked(base, head).unit_tests


def test_a_unit_test_goes_by_the_models_own_query() -> None:
    assert units(unit(), unit(mart="select id, twice + 1 as twice from s.stg")) != []
    assert units(unit(), unit(mart="select id, twice from s.stg where id > 1")) != []
    assert units(unit(), unit(mart="select id, twice as twofold from s.stg")) != []
    assert units(unit(), unit(mart="select   s.id, s.twice from s.stg as s")) == []


def test_a_unit_test_does_not_see_what_its_parents_hold() -> None:
    assert units(unit(), unit(STG.replace("* 2", "* 3") + " where id > 0")) == []
    assert units(unit(), unit(STG.replace("status", "status, 1 as one"))) == []


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        ("amount * 3 as twice", False),
        ("amount * 2 > 3 as twice", True),
        ("cast(amount * 2 as string) as twice", True),
        ("amount * 2.5 as twice", True),
        ("amount * 20000000000 as twice", True),
        ("case when amount > 7 then amount * 2 end as twice", True),
    ],
)
def test_a_unit_test_goes_by_types_that_only_the_sql_above_tells(made: str, counts: bool) -> None:
    """dbt types the fixture by them; no catalog lists those of head before it is built."""
    stg = STG.replace("amount * 2 as twice", made)
    assert (units(unit(), unit(stg)) != []) == counts
    assert units(unit(stg), unit(stg + " where id > 0")) == []


@pytest.mark.parametrize("how", ["own hook", "a contract keeps it"])
def test_a_unit_test_goes_by_types_that_no_sql_tells(how: str) -> None:
    """A hook may make other types of the same SQL; an enforced contract keeps them."""
    base, head = unit(), unit(STG.replace("* 2", "* 2.5") if how.startswith("a ") else STG)
    for side, type_ in ((base, "int"), (head, "string")):
        stg = side.nodes["model.p.stg"]
        if how == "own hook":
            stg.config["post-hook"] = [{"sql": f"alter table s.stg alter twice type {type_}"}]
        else:
            stg.config["contract"] = {"enforced": True}
            stg = side.nodes["model.p.stg"] = replace(
                stg, columns={"twice": Column(name="twice", data_type="int")}
            )
    assert (units(base, head) != []) == (not how.startswith("a "))


def test_a_unit_test_goes_by_the_columns_it_is_given() -> None:
    assert units(unit(), unit("select id, amount from s.orders")) != []
    ids = {"id": "int", "twice": "int", "status": "string"}
    assert units(unit(types=ids), unit(types={**ids, "id": "string"})) != []
    assert units(unit(types=ids), unit(types={**ids, "status": "int"})) == []
    assert units(unit(types=ids), unit()) == []


def test_a_unit_test_goes_by_its_fixture() -> None:
    assert units(unit(), unit(given=[{"id": 2, "twice": 4}])) != []
    assert units(unit(), unit(overrides={"vars": {"x": 1}})) != []
    assert units(unit(), unit(config={"tags": ["x"]})) == []
    assert units(shop(), unit()) == ["unit_test.p.mart.u"]


# --- two sides that are not two sides ------------------------------------------------------------


def test_another_project_or_adapter_is_refused() -> None:
    other = shop()
    other.metadata.project_name = "q"
    with pytest.raises(RippleError, match="project q, not of p"):
        select(other, shop())
    other = shop()
    other.metadata.adapter_type = "duckdb"
    with pytest.raises(RippleError, match="made on duckdb"):
        select(other, shop())


def test_another_dbt_is_reported() -> None:
    other = shop()
    other.metadata.dbt_version = "1.10.0"
    selection = picked(other, shop())
    assert "base was made by dbt 1.10.0, head by dbt 1.11.0" in selection.notes[0].message
    assert selection.tests == []


def test_sql_that_only_the_environment_makes_differ_is_reported_once() -> None:
    def side(value: str, asked: str) -> Project:
        raw = f"select '{{{{ {asked} }}}}' as id, 1 as twice from s.orders"
        return shop(f"select '{value}' as id, 1 as twice from s.orders", raw=raw)

    selection = picked(side("dev", "env_var('X')"), side("prod", "env_var('X')"))
    assert [t.name for t in selection.tests] == ["on_id"]
    (note,) = map(str, selection.notes)
    assert note.startswith("stg has other compiled SQL than on base though the code is the same")
    assert "--base-ref" in note
    for asked in ("target.name", "run_started_at", "invocation_id"):
        selection = picked(side("dev", asked), side("prod", asked))
        assert selection.tests == []
        assert [str(note.code) for note in selection.notes] == ["taken_from_base"]
    assert picked(shop(), shop(STG + " where id > 0")).notes == []


def test_a_setting_of_the_target_is_the_reason_of_all_tests() -> None:
    base, head = (
        project(orders(), check("t", "select id from s.orders", RAW), catalog=LISTED).having(
            session={"settings.integer_division": value}
        )
        for value in ("false", "true")
    )
    (test,) = picked(base, head).tests
    assert test.reason.message == "settings.integer_division of the target changed"
    assert picked(base, base).tests == []


def test_sql_that_differs_for_a_known_cause_is_not_said_to_differ_by_the_target() -> None:
    def side(latest: int) -> Project:
        versions = [
            replace(
                node(f"model.p.dim.v{v}", f"select {v} as id", version=v, latest_version=latest),
                name="dim",
            )
            for v in (1, 2)
        ]
        reader = node(
            "model.p.reader",
            f"select id from s.v{latest}",
            f"model.p.dim.v{latest}",
            raw="select id from {{ ref('dim') }}",
            refs=[Ref(name="dim")],
        )
        return project(*versions, reader)

    selection = picked(side(1), side(2))
    assert selection.notes == []
    assert [(c.kind, c.before, c.after) for c in selection.causes] == [("ref", "dim.v1", "dim.v2")]


def test_generic_tests_are_compared_like_any_other() -> None:
    def side(where: str) -> Project:
        sql = f"select id from (select * from s.orders where {where}) x where id is null"
        test = generic("not_null_id", "not_null", sql, RAW, config={"where": where})
        return project(orders(), test, catalog=LISTED)

    assert names(side("id > 0"), side("id > 1")) == ["not_null_id"]
    assert names(side("id > 0"), side("id  >  0")) == []


@pytest.mark.parametrize(
    ("adapter", "text", "selected"),
    [
        ("duckdb", "  select columns(*)\n-- all of them\nfrom s.orders ", []),
        ("duckdb", "select /*+ a hint */ columns(*) from s.orders", ["t"]),
        ("duckdb", "select columns(*) from s.orders where 'a  b' = ''", ["t"]),
        ("snowflake", "select   columns(*) from s.orders", ["t"]),
    ],
)
def test_an_opaque_query_is_compared_without_its_layout(
    adapter: str, text: str, selected: list[str]
) -> None:
    def side(sql: str) -> Project:
        model = node("model.p.a", sql, RAW, config={"materialized": "unknown to us"})
        return project(
            orders(), model, check("t", "select id from s.a", "model.p.a"), adapter=adapter
        )

    assert names(side("select columns(*) from s.orders"), side(text)) == selected
