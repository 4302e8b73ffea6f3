"""Hooks that only delete from their own table are filters: as executed, and what that proves."""

from __future__ import annotations

import re

import duckdb
import pytest
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.hooks import deletes_as_filters
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.selection.select import select

MODEL = "model.p.a"
TESTS = {
    "whole": "select id from s.a where id is null",
    "alike": "select id from s.a group by id having count(*) > 1",
    "few": "select count(*) as n from s.a having count(*) > 100",
}


def side(
    where: str, *hooks: str, sql: str = "", when: str = "post-hook", **more: object
) -> Project:
    """A table over a source, and its hooks."""
    made = project(
        orders(),
        node(
            MODEL,
            sql or f"select id, amount, status from s.orders where {where}",
            RAW,
            config={"materialized": "table", when: [{"sql": hook} for hook in hooks], **more},
        ),
        *(check(name, sql, MODEL) for name, sql in TESTS.items()),
        catalog=LISTED,
        adapter="duckdb",
    )
    return made.having(
        run_results=[
            RunResult(unique_id=f"test.p.{name}", status="pass", failures=0) for name in TESTS
        ]
    )


def filtered(made: Project) -> str | None:
    """The query that stands for the model, where its hooks are filters."""
    filtered_nodes = deletes_as_filters(ProjectContext(made), analyse(made))
    return filtered_nodes[MODEL].compiled_code if filtered_nodes else None


ROWS = "(1, 10, 'a'), (1, 10, 'a'), (2, null, 'b'), (null, 5, null), (null, null, null), (3, 0, '')"


@pytest.mark.parametrize("rows", [ROWS, "(null, null, null)", ""])
@pytest.mark.parametrize(
    "hooks",
    [
        ["delete from {{ this }} where id = 1"],
        ["delete from {{this}} where amount is null;"],
        [
            "delete from {{ this }} where id = 1 or amount > 3",
            "delete from {{ this }} where id = 2",
        ],
        ["delete from {{ this }}\nwhere not (status = 'a') -- the others"],
        ["DELETE FROM {{- this -}} WHERE coalesce(status, '') = '' and id % 2 = 1"],
        ["delete from {{ this }} where null"],
        ["delete from {{ this }} where not (id in [1, 3, null])"],
        ["delete from {{ this }} where not (id in (1, 3, null))"],
        ["delete from {{ this }} where status in ['a', null][1:1]"],
        ["delete from {{ this }} where true"],
    ],
)
def test_the_filter_leaves_the_rows_that_the_hooks_leave(hooks: list[str], rows: str) -> None:
    query = filtered(side("true", *hooks))
    assert query is not None
    connection = duckdb.connect()
    connection.execute("create schema s")
    connection.execute("create table s.orders (id integer, amount integer, status varchar)")
    if rows:
        connection.execute(f"insert into s.orders values {rows}")
    connection.execute("create table s.a as select id, amount, status from s.orders where true")
    for hook in hooks:
        connection.execute(re.sub(r"\{\{-?\s*this\s*-?\}\}", "s.a", hook))
    order = "order by all"
    left = connection.execute(f"select * from s.a {order}").fetchall()
    assert connection.execute(f"select * from ({query}) {order}").fetchall() == left


@pytest.mark.parametrize(
    "hook",
    [
        "delete from {{ this }}",
        "delete from {{ this }} where id in (select id from s.orders)",
        "delete from {{ this }} where amount < (select avg(amount) from {{ this }})",
        "delete from {{ this }} where random() < 0.5",
        "delete from {{ this }} where status < current_date",
        "delete from {{ this }} where own_function(id)",
        "delete from {{ this }} where id = {{ var('bound') }}",
        "delete from {{ this }} where rowid = 1",
        "delete from {{ this }} where gone = 1",
        "delete from {{ this }} using s.orders where id = 1",
        "delete from {{ this }} where id = 1; insert into {{ this }} values (1, 2, 'x')",
        "delete from {{ ref('a') }} where id = 1",
        "update {{ this }} set id = 1 where id = 2",
        "{% if x %}delete from {{ this }} where id = 1{% endif %}",
        "truncate {{ this }}",
    ],
)
def test_other_hooks_are_none(hook: str) -> None:
    assert filtered(side("true", hook)) is None
    assert filtered(side("true", "delete from {{ this }} where id = 1", hook)) is None


def test_neither_are_those_of_other_relations_nor_those_before() -> None:
    hook = "delete from {{ this }} where id = 1"
    assert filtered(side("true", hook)) is not None
    assert filtered(side("true", hook, when="pre-hook")) is None
    assert filtered(side("true", hook, materialized="incremental")) is None
    assert filtered(side("true", hook, contract={"enforced": True})) is None
    assert filtered(side("true", hook, sql="select id, id from s.orders")) is not None
    assert filtered(side("true", hook, sql="select amount, status from s.orders")) is None


DELETES = "delete from {{ this }} where id = 1"
LIST_DELETES = "delete from {{ this }} where not (id in [1, 3, null])"
VALUES_DELETE = "delete from {{ this }} where not (id in (1, 3, null))"


@pytest.mark.parametrize(
    ("base", "head", "proven"),
    [
        # A filter is added below which the hook stays as it is.
        (side("amount > 0", DELETES), side("amount > 0 and id > 2", DELETES), ["alike", "whole"]),
        # The hook deletes more, or begins to.
        (side("true", DELETES), side("true", DELETES, DELETES.replace("1", "2")), ["alike", "whole"]),
        (side("true"), side("true", DELETES), ["alike", "whole"]),
        # A list in brackets is a value: where it has a NULL, the values in parentheses delete nothing.
        (side("true", LIST_DELETES), side("true", VALUES_DELETE), []),
        (side("true", VALUES_DELETE), side("true", VALUES_DELETE, LIST_DELETES), ["alike", "whole"]),
        # It deletes others, less, or nothing any more.
        (side("true", DELETES), side("true", DELETES.replace("1", "2")), []),
        (side("true", DELETES, DELETES.replace("1", "2")), side("true", DELETES), []),
        (side("true", DELETES), side("true"), []),
        # The rows are fewer, but it writes others, or what it deletes is another column now.
        (side("true", DELETES), side("true", "insert into {{ this }} values (null, 1, '')"), []),
        (
            side("true", DELETES),
            side("", DELETES, sql="select amount as id, amount, status from s.orders"),
            [],
        ),
    ],
)  # fmt: skip
def test_what_is_true_of_every_row_is_true_of_those_that_are_left(
    base: Project, head: Project, proven: list[str]
) -> None:
    selection = select(base, head)
    assert sorted(t.unique_id.removeprefix("test.p.") for t in selection.proven) == proven
    assert {t.name for t in selection.tests} == TESTS.keys() - set(proven)
    assert MODEL in selection.models
