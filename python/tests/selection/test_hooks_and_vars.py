"""What no compiled SQL shows: relations that hooks name, and vars in code that was not compiled."""

from __future__ import annotations

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, picked, project

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.changes.conditions import set_variables

OTHER = "select id, amount from s.orders"


def hooked(other: str, hook: str, *more: Macro, columns: str = "id, amount") -> Project:
    """orders -> other, and orders -> a -> below with a hook on a."""
    return project(
        orders(),
        node("model.p.other", other, RAW),
        node(
            "model.p.a",
            f"select {columns} from s.orders",
            RAW,
            config={"post-hook": [{"sql": hook}]},
        ),
        node("model.p.below", "select id, amount from s.a", "model.p.a"),
        check("t", "select id from s.a", "model.p.a"),
        catalog=LISTED,
        macros=more,
    )


@pytest.mark.parametrize(
    "hook",
    [
        "delete from {{ this }} where id in (select id from s.other)",
        "delete from {{ this }} where id in (select id from `s` . `other`)",
        "delete from {{ this }} where id in (select id from other)",
        "delete from {{ this }} where id in (select id from {{ target.schema }}.other)",
        "merge into {{ this }} using S.OTHER as o on true when matched then delete",
        "{{ clean() }}",
    ],
)
def test_a_relation_that_a_hook_names_counts(hook: str) -> None:
    clean = macro("macro.p.clean", "{% macro clean() %}delete from a using s.other{% endmacro %}")
    base, head = (hooked(o, hook, clean) for o in (OTHER, OTHER + " where amount > 1"))
    found = picked(base, head)
    assert [t.name for t in found.tests] == ["t"]
    assert found.tests[0].path[0] == "model.p.other.*rows*"


@pytest.mark.parametrize(
    "hook",
    [
        "delete from {{ this }} where other = 1",
        "grant select on {{ this }} to reader",
        "insert into s.elsewhere select 1 -- from s.other",
    ],
)
def test_a_relation_that_no_hook_names_does_not(hook: str) -> None:
    assert names(*(hooked(o, hook) for o in (OTHER, OTHER + " where amount > 1"))) == []


def test_a_hook_that_names_what_is_made_of_its_node_goes_in_no_circle() -> None:
    hook = "insert into s.below select id, 0 from s.a"
    assert names(hooked(OTHER, hook), hooked(OTHER, hook)) == []
    assert names(hooked(OTHER, hook), hooked(OTHER, hook.replace("0", "1"))) == ["t"]


def test_a_hook_that_inserts_goes_by_the_places_of_columns() -> None:
    hook = "insert into {{ this }} values (1, 2)"
    base = hooked(OTHER, hook)
    assert names(base, hooked(OTHER, hook, columns="amount, id")) == ["t"]
    grant = "grant select on {{ this }} to reader"
    assert names(hooked(OTHER, grant), hooked(OTHER, grant, columns="amount, id")) == []


# --- vars -----------------------------------------------------------------------------------------


RECENT = (
    "select id, amount from x {% if is_incremental() %} where day > {{ var('days') }} {% endif %}"
)


def incremental(raw: str, *more: Macro, hook: str = "") -> Project:
    config = {"materialized": "incremental", "post-hook": [{"sql": hook}] if hook else []}
    return project(
        orders(),
        node("model.p.a", "select id, amount from s.orders", RAW, raw=raw, config=config),
        check("t", "select id from s.a", "model.p.a"),
        catalog=LISTED,
        macros=more,
    )


def with_vars(base: Project, head: Project, name: str = "days") -> tuple[Project, Project]:
    set_variables(base, head, {name: "3", "same": "1"}, {name: "4", "same": "1"})
    return base, head


def test_a_var_of_the_branch_that_was_not_compiled_counts() -> None:
    assert names(*with_vars(incremental(RECENT), incremental(RECENT))) == ["t"]
    assert names(*with_vars(incremental(RECENT), incremental(RECENT), "weeks")) == []


def test_a_var_that_is_put_together_may_be_any() -> None:
    raw = RECENT.replace("'days'", "'da' ~ 'ys'")
    assert names(*with_vars(incremental(raw), incremental(raw), "weeks")) == ["t"]


def test_a_var_of_a_macro_of_that_branch_counts() -> None:
    days = macro("macro.p.days", "{% macro days() %}{{ var('days') }}{% endmacro %}")
    raw = RECENT.replace("var('days')", "days()")
    assert names(*with_vars(incremental(raw, days), incremental(raw, days))) == ["t"]
    assert names(*with_vars(incremental(raw, days), incremental(raw, days), "weeks")) == []


def test_a_var_of_a_hook_counts() -> None:
    hook = "delete from {{ this }} where amount > {{ var('days') }}"
    sides = (incremental("select 1", hook=hook), incremental("select 1", hook=hook))
    assert names(*with_vars(*sides)) == ["t"]


def test_a_var_of_compiled_code_counts_by_what_it_compiles_to() -> None:
    raw = "select id, amount, {{ var('days') }} from x"
    assert names(*with_vars(incremental(raw), incremental(raw))) == []


def test_artifacts_hold_no_vars_and_that_is_said_where_it_matters() -> None:
    (note,) = picked(incremental(RECENT), incremental(RECENT)).notes
    assert note.startswith("dbt writes no vars into its artifacts") and "(a)" in note
    assert picked(*with_vars(incremental(RECENT), incremental(RECENT))).notes == []
    assert picked(incremental("select 1"), incremental("select 1")).notes == []
