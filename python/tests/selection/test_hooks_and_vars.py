"""What no compiled SQL shows: relations that hooks name, and vars in code that was not compiled."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, picked, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.changes.comparability import with_variables
from dbt_ripple.graph import known_hooks
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.reasons import Code

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
        *(
            [check("of_below", "select id from s.below", "model.p.below")]
            if "below" in hook
            else []
        ),
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
    selection = picked(base, head)
    assert [t.name for t in selection.tests] == ["t"]
    assert selection.tests[0].path[0] == "model.p.other.*rows*"


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
    assert names(hooked(OTHER, hook), hooked(OTHER, hook.replace("0", "1"))) == ["of_below"]


@pytest.mark.parametrize(
    "before",
    [
        "select 1 as `it's`",
        """select "it's" """,
        r"select replace(a, '\\', '/') from s.orders",
        "select 1 -- it's\n",
        "{% set mark = '\\'' %}select {{ mark }}it{{ mark }}",
    ],
)
def test_no_quotation_mark_hides_what_a_hook_writes(before: str) -> None:
    hook = f"{before}; update s.below set id = 0 where '1' = '1'"
    assert names(hooked(OTHER, hook), hooked(OTHER, hook.replace("0", "1"))) == ["of_below"]
    read = f"{before}; select 'update s.below set id = 0'"
    assert names(hooked(OTHER, read), hooked(OTHER, read.replace("0", "1"))) == []


def test_a_hook_that_inserts_goes_by_the_places_of_columns() -> None:
    hook = "insert into {{ this }} values (1, 2)"
    base = hooked(OTHER, hook)
    assert names(base, hooked(OTHER, hook, columns="amount, id")) == ["t"]
    grant = "grant select on {{ this }} to reader"
    assert names(hooked(OTHER, grant), hooked(OTHER, grant, columns="amount, id")) == []


# --- hooks that write to other relations ------------------------------------------------------------

B, C = "select id from s.orders", "select id, amount from s.orders"
LOG_TO = macro(
    "macro.p.log_to",
    "{% macro log_to(it) %}insert into {{ it }} select count(*), {{ var('days') }} from {{ this }}{% endmacro %}",
)
BY_STRING = macro(
    "macro.p.by_string",
    "{% macro by_string() %}{% do run_query('delete from ' ~ ref('b') ~ ' where true') %}{% endmacro %}",
)
IN_A_BLOCK = macro(
    "macro.p.in_a_block",
    "{% macro in_a_block() %}{% set q %}truncate {{ target.schema }}.b{% endset %}{% do run_query(q) %}{% endmacro %}",
)
INDEXED = macro(
    "macro.p.indexed", "{% macro indexed(c) %}create index i on {{ this }} ({{ c }}){% endmacro %}"
)


def writing(
    hook: str | None,
    *,
    a: str = C,
    b: str = B,
    c: str = C,
    on: str = "model.p.a",
    reader: str = "select id from s.b",
    declares_ref: bool = True,
    above: str = RAW,
) -> Project:
    """a with a hook, b with a reader, c; nothing but the hook may relate them."""
    hooks = {"config": {"post-hook": [{"sql": hook}]}} if hook else {}
    of_a = hooks if on == "model.p.a" else {}
    operation = (
        node("operation.p.p-on-run-end-0", None, raw=hook or "") if on == "operation" else None
    )
    return project(
        orders(),
        node("model.p.c", c, RAW),
        node("model.p.b", b, RAW),
        node("model.p.a", a, *above.split(), **of_a),
        node("model.p.reads_b", reader, *(["model.p.b"] if declares_ref else [])),
        *([operation] if operation else []),
        check("of_b", "select id from s.b", "model.p.b"),
        check("of_reader", "select id from s.reads_b", "model.p.reads_b"),
        check("of_c", "select id from s.c", "model.p.c"),
        catalog=LISTED,
        macros=[LOG_TO, BY_STRING, IN_A_BLOCK, INDEXED],
    )


WRITES = [
    "insert into s.b select id from {{ this }}",
    "insert into b select id from {{ this }}",
    "insert into {{ ref('b') }} select id from s.a",
    "insert overwrite table s.b select id from {{ this }}",
    "delete from {{ target.schema }}.b where id in (select id from {{ this }})",
    'delete from "{{ this.schema }}"."b"',
    "update s.b set id = 0",
    "merge into s.b as t using {{ this }} as n on t.id = n.id when matched then delete",
    "truncate table s.b",
    "create or replace view s.b as select id from {{ this }}",
    "drop table if exists s.b",
    "alter table s.b rename to gone",
    "copy s.b from 'file.csv'",
    "with x as (select 1 as id) insert into s.b select id from x",
    "grant select on {{ this }} to me; delete from s.b",
    "{% if target.name == 'prod' %}delete from s.b{% endif %}",
    "{{ log_to(ref('b')) }}",
    "{{ log_to('s.b') }}",
    "{{ by_string() }}",
    "{{ in_a_block() }}",
    "{{ adapter.truncate_relation(ref('b')) }}",
]


@pytest.mark.parametrize("hook", WRITES)
def test_a_hook_that_writes_changes_what_reads_the_relation(hook: str) -> None:
    base = writing(hook)
    for other in (writing(None), writing(f"{hook}; select 1")):
        for sides in ((base, other), (other, base)):
            selection = picked(*sides)
            assert [t.name for t in selection.tests] == ["of_b", "of_reader"]
            assert {"model.p.b", "model.p.reads_b"} <= set(selection.models)
    assert names(base, writing(f"  {hook}\n -- why")) == []


@pytest.mark.parametrize(
    "hook",
    [
        "insert into {{ this }} select id from s.b",
        "delete from {{ this }} where id in (select id from s.b)",
        "merge into {{ this }} using s.b on true when matched then update set id = 0",
        "grant select on s.b to me",
        "analyze s.b",
        "comment on table s.b is 'delete from s.b'",
        "insert into s.elsewhere select id from s.b",
        "copy s.b to 'file.csv'",
        "select count(*) from s.b",
        "{{ indexed('id') }}",
        "{{ dbt_ripple.apply_tags() }}",
        "-- depends_on: {{ ref('b') }}",
        "set timezone = 'UTC'",
        "alter session set query_tag = 'x'",
    ],
)
def test_a_hook_that_does_not_write_it_changes_no_reader(hook: str) -> None:
    names_of_tests = names(writing(None), writing(hook))
    assert names_of_tests == []


def test_what_the_hook_reads_changes_what_it_writes() -> None:
    hook = "insert into s.b select amount from {{ this }}"
    edited = C.replace("amount", "amount + 1 as amount")
    assert names(writing(hook), writing(hook, a=edited)) == ["of_b", "of_reader"]
    assert names(writing(hook), writing(hook, c=edited)) == []
    other = "insert into s.b select amount from s.c"
    assert names(writing(other), writing(other, c=edited)) == ["of_b", "of_reader"]
    assert names(writing(other), writing(other, a=edited)) == []


def test_a_hook_may_write_to_what_its_node_is_made_of() -> None:
    """In a circle, an edit of any of them is seen in all that reads it, and nothing else is."""

    def circle(
        hook: str = "update s.b set id = (select max(id) from {{ this }})", **more: str
    ) -> Project:
        return writing(hook, above="model.p.b model.p.c", **more)

    a = "select b.id from s.b join s.c on b.id = c.id"
    base = circle(a=a)
    assert names(base, circle(a=a)) == []
    assert names(base, circle(a=a, c=C + " where id > 1")) == ["of_b", "of_reader", "of_c"]
    assert names(base, circle(a=a + " where b.id > 1")) == ["of_b", "of_reader"]
    assert names(base, circle("update s.b set id = 7", a=a)) == ["of_b", "of_reader"]


def test_hooks_that_write_one_after_the_other() -> None:
    """a's hook writes to b; b's to c; the edit of a comes to the tests of c."""

    def chain(a: str) -> Project:
        hooked = {
            "b": "insert into s.c select id from s.b",
            "a": "insert into s.b select id from s.a",
        }
        return project(
            orders(),
            *(
                node(
                    f"model.p.{n}",
                    sql,
                    RAW,
                    config={"post-hook": [{"sql": hooked[n]}]} if n in hooked else {},
                )
                for n, sql in (("c", C), ("b", B), ("a", a))
            ),
            check("of_c", "select id from s.c", "model.p.c"),
            catalog=LISTED,
        )

    assert names(chain(C), chain(C + " where id > 1")) == ["of_c"]
    assert names(chain(C), chain(C + " -- the same")) == []


@pytest.mark.parametrize("reader", ["select id from s.audit", "select id from elsewhere.audit"])
def test_a_hook_may_write_to_a_relation_that_dbt_does_not_know(reader: str) -> None:
    hook = "insert into s.audit select id from {{ this }}"
    base = writing(hook, reader=reader, declares_ref=False)
    assert names(base, writing(hook, reader=reader, declares_ref=False, a=C + " where id > 1")) == [
        "of_reader"
    ]
    assert names(base, writing(None, reader=reader, declares_ref=False)) == ["of_reader"]


def test_an_on_run_hook_writes_from_what_it_reads() -> None:
    hook = "insert into s.b select id from {{ ref('c') }}"
    base = writing(hook, on="operation")
    assert names(base, writing(hook, on="operation", c=C + " where id > 1")) == [
        "of_b",
        "of_reader",
        "of_c",
    ]
    assert names(base, writing(hook, on="operation", a=C + " where id > 1")) == []


@pytest.mark.parametrize(
    ("hook", "reader"),
    [
        (
            "create or replace macro top_c() as (select max(id) from {{ ref('c') }})",
            "select top_c() as id",
        ),
        ("create macro all_c() as table select * from s.c", "select id from ALL_C()"),
        (
            "create function s.f(x int) returns int return (select max(id) from c)",
            "select s.f(1) as id",
        ),
        ("set variable cut = (select max(id) from s.c)", "select getvariable('cut') as id"),
        ("create view s.of_c as select * from s.c", "select id from s.of_c"),
    ],
)
@pytest.mark.parametrize("on", ["model.p.a", "operation"])
def test_what_a_hook_makes_is_what_it_is_made_of(hook: str, reader: str, on: str) -> None:
    def made(hook: str = hook, reader: str = reader, **more: str) -> Project:
        return writing(hook, reader=reader, declares_ref=False, on=on, **more)

    below = C + " where id > 1"
    assert names(made(), made(c=below)) == ["of_reader", "of_c"]
    assert names(made(), made(b=B + " where id > 1")) == ["of_b"]
    assert names(made(reader="select 1 as id"), made(reader="select 1 as id", c=below)) == ["of_c"]
    if on != "operation":
        assert names(made(), made(hook.replace("max", "min").replace("*", "id"))) == ["of_reader"]


def test_a_hook_that_may_write_to_anything_selects_all() -> None:
    for hook in ("call refresh()", "select my_procedure()", "insert into {{ var('t') }} select 1"):
        selection = picked(writing(None), writing(hook))
        assert [t.name for t in selection.tests] == ["of_b", "of_reader", "of_c"]
        (note,) = [n for n in selection.notes if n.code == Code.EVERY_TEST_SELECTED]
        assert "cannot be told" in note.message and "(a hook of a; " in note.message
        assert "`hooks: {writes: [relation]}`" in note.message
        assert names(writing(hook), writing(hook, a=C + " where id > 1")) == []


# --- on-run-* hooks that change ---------------------------------------------------------------------

PIECES = """
{% macro grants(to) %}
  {% do log('update of rights, call ' ~ to, info=true) %}
  {% set sql %}grant select on all tables in schema {{ target.schema }} to {{ to }}{% endset %}
  {% do run_query(sql) %}
{% endmacro %}
|{% macro each() %}
  {% for t in ['b'] %}{% do run_query('delete from ' ~ target.schema ~ '.' ~ t) %}{% endfor %}
  {% do run_query('delete from ' ~ ref('a')) %}
{% endmacro %}
|{% macro by_var() %}{% do run_query(var('sql')) %}{% endmacro %}
|{% macro by_set() %}{% set q = var('sql') %}{% if execute %}{{ q }}{% endif %}{% endmacro %}
|{% macro by_list() %}{% set all = [] %}{% do all.append(var('x')) %}
  {% for q in all %}{% do run_query(q) %}{% endfor %}{% endmacro %}
|{% macro by_result() %}{% set found = run_query('select sql from ' ~ ref('b')) %}
  {% for q in found.columns[0].values() %}{% do run_query(q) %}{% endfor %}{% endmacro %}
|{% macro given(q) %}{% do run_query(q) %}{% endmacro %}
|{% macro given_by(v) %}{{ given(v) }}{% endmacro %}
|{% macro returns() %}{{ return(env_var('X')) }}{% endmacro %}
|{% macro two() %}{% set a %}grant select on s.b to me{% endset %}
  {% set b %}call refresh(){% endset %}{% do run_query(a) %}{% do run_query(b) %}{% endmacro %}
|{% macro drops() %}{% for r in run_query('select 1 from ' ~ ref('c')) %}
  {% do run_query('drop table ' ~ r) %}{% endfor %}{% endmacro %}
|{% macro odd() %}{% set a %}frobnicate everything{% endset %}{% do run_query(a) %}{% endmacro %}
|{% macro inserts(relation, kind='nodes') %}
  {% set message %}There is no such kind, use another{% endset %}
  {% if kind == 'x' %}{{ exceptions.raise_compiler_error(message) }}{% endif %}
  {% set rows = [] %}{% for n in range(3) %}{% do rows.append(n ~ var('days')) %}{% endfor %}
  {% set q = "insert into " ~ relation ~ " values (" ~ ', '.join(rows) ~ ")" %}
  {% call statement('insert') %}{{ q }}{% endcall %}
{% endmacro %}
|{% macro session() %}{% do run_query("set search_path to x") %}{% endmacro %}
""".split("|")


def on_run(*hooks: str, end: bool = False, **more: str) -> Project:
    """As `writing`, with hooks of the project."""
    side = writing(None, **more)
    when = "end" if end else "start"
    for i, sql in enumerate(hooks):
        hook = node(f"operation.p.p-on-run-{when}-{i}", None, raw=sql)
        side.nodes[hook.unique_id] = hook
    for text in PIECES:
        name = text.split("macro ")[1].split("(")[0]
        calls = ["macro.p.given"] if name == "given_by" else []
        side.macros[f"macro.p.{name}"] = macro(f"macro.p.{name}", text, *calls)
    return project(*side.nodes.values(), catalog=LISTED, macros=list(side.macros.values()))


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        ("delete from s.b where id = 1", ["of_b", "of_reader"]),
        ("{{ each() }}", ["of_b", "of_reader"]),
        ("{{ given('delete from ' ~ ref('b')) }}", ["of_b", "of_reader"]),
        ("{{ given_by('delete from ' ~ ref('b')) }}", ["of_b", "of_reader"]),
        ("begin; insert into s.b select id from s.c; commit", ["of_b", "of_reader"]),
        ("revoke select on s.b from me", ["of_b", "of_reader"]),
        ("{{ inserts(ref('b')) }}", ["of_b", "of_reader"]),
        ("{{ inserts(relation=ref('b'), kind='sources') }}", ["of_b", "of_reader"]),
        ("{{ 'delete from ' ~ ref('b') if target.name == 'prod' else '' }}", ["of_b", "of_reader"]),
        ("create table if not exists s.audit (id int)", []),
        ("create schema if not exists elsewhere", []),
        ("{{ grants('reader') }}", []),
        ("{{ grants(var('reader')) }}", []),
        ("{{ log('call me', info=true) }}", []),
        ("grant usage on schema {{ target.schema }} to {{ env_var('WHO') }}", []),
        ("create macro f() as (1)", []),
        ("select count(*) from s.b", []),
    ],
)
@pytest.mark.parametrize("end", [True, False])
def test_an_on_run_hook_that_changes_is_followed(hook: str, expected: list[str], end: bool) -> None:
    grant = "grant select on s.c to me"
    base, head = on_run(grant, end=end), on_run(hook, grant, end=end)
    for sides in ((base, head), (head, base)):
        selection = picked(*sides)
        assert [t.name for t in selection.tests] == expected
        assert any("p-on-run-" in note.message for note in selection.notes)
    notes = picked(head, on_run(f"{hook} -- why", grant, end=end)).notes
    unseen = [note for note in notes if note.code in (Code.VARS_UNSEEN, Code.ENVIRONMENT_UNSEEN)]
    assert notes == unseen and bool(unseen) == ("inserts(" in hook)


@pytest.mark.parametrize(
    "hook",
    [
        "call refresh()",
        "set timezone = 'UTC'",
        "use schema other",
        "attach 'other.duckdb' as raw",
        "alter session set timezone = 'UTC'",
        "drop schema s cascade",
        "frobnicate everything",
        "begin call refresh(); end",
        "grant select on s.b to me; execute immediate 'x'",
        "create or replace masking policy p as (v int) returns int -> 0",
        "{% if target.name == 'x' %}grant select on s.b to me{% else %}call f(){% endif %}",
        "{{ var('sql') }}",
        "{{ env_var('SQL') }} s.b",
        "{{ 'call ' ~ var('what') }}",
        "{{ 'grant select on s.b to me' if target.name == 'prod' else var('sql') }}",
        "{{ 'call refresh()' if target.name == 'prod' }}",
        "{{ context['by_var']() }}",
        "{{ adapter.execute(var('sql')) }}",
        "{{ adapter.drop_schema(schema) }}",
        "{{ by_var() }}",
        "{{ by_set() }}",
        "{{ by_list() }}",
        "{{ by_result() }}",
        "{{ given(var('sql')) }}",
        "{{ given_by(env_var('SQL')) }}",
        "{{ given(model.meta.sql) }}",
        "{{ inserts(var('b')) }}",
        "{{ inserts() }}",
        "{{ given(returns()) }}",
        "{{ two() }}",
        "{{ drops() }}",
        "{{ odd() }}",
        "{{ session() }}",
        "insert into {{ var('t') }} select 1",
    ],
)
def test_an_on_run_hook_that_cannot_be_read_selects_all(hook: str) -> None:
    grant = "grant select on s.c to me"
    for sides in ((on_run(grant), on_run(grant, hook)), (on_run(hook), on_run())):
        assert names(*sides) == ["of_b", "of_reader", "of_c"]
    if "context" not in hook:  # it may read which place it has
        assert names(on_run(hook), on_run(grant, hook)) == []


def test_a_hook_reads_what_another_hook_has_written() -> None:
    top = "create macro top() as (select max(id) from s.limits)"
    log = "insert into s.b select top()"
    one, two = (f"create table s.limits as select {n} as id" for n in (1, 2))
    assert names(on_run(one, top, log), on_run(two, top, log)) == ["of_b", "of_reader"]
    assert names(on_run(one, log), on_run(two, log)) == []


def test_the_order_of_on_run_hooks() -> None:
    one, two = "delete from s.b where id = 1", "insert into s.b values (1)"
    grant, call = "grant select on s.c to me", "call refresh()"
    assert names(on_run(one, two), on_run(two, one)) == ["of_b", "of_reader"]
    assert names(on_run(one, grant), on_run(grant, one)) == []
    assert names(on_run(one, call), on_run(call, one)) == ["of_b", "of_reader"]
    assert names(on_run(call, "call more()"), on_run("call more()", call)) == [
        "of_b",
        "of_reader",
        "of_c",
    ]
    assert names(on_run(one), on_run(one, end=True)) == ["of_b", "of_reader"]


@pytest.mark.parametrize(
    "raw",
    [
        "{% do run_query('insert into ' ~ ref('b') ~ ' select 1') %} select id from s.orders",
        "{% call statement('x') %} delete from s.b {% endcall %} select id from s.orders",
        "{% set q %}truncate s.b{% endset %}{% do run_query(q) %} select id from s.orders",
        "{{ by_string() }} select id from s.orders",
    ],
)
def test_what_a_models_jinja_runs_writes_as_a_hook_does(raw: str) -> None:
    def runs(raw: str, **more: str) -> Project:
        side = writing(None, **more)
        side.nodes["model.p.a"] = replace(side.nodes["model.p.a"], raw_code=raw)
        if "by_string" in raw:
            side.nodes["model.p.a"].depends_on.macros = ["macro.p.by_string"]
        return side

    plain = "select id from s.orders"
    assert names(runs(plain), runs(raw)) == ["of_b", "of_reader"]
    assert names(runs(plain), runs("{% set x = run_query('select 1 from s.b') %}" + plain)) == []
    header = "insert into s.b select 1"
    with_header = writing(None)
    with_header.nodes["model.p.a"].config["sql_header"] = header
    assert names(writing(None), with_header) == ["of_b", "of_reader"]


def test_who_writes_to_what_is_built_is_built() -> None:
    hook = "insert into s.b select 1"
    selection = picked(writing(hook), writing(hook, b=B + " where id > 1"))
    assert selection.models == ["model.p.b", "model.p.a", "model.p.reads_b"]
    selection = picked(writing(hook), writing(hook, a=C + " where id > 1"))
    assert selection.models == ["model.p.b", "model.p.a"]


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
    return with_variables(base, head, {name: "3", "same": "1"}, {name: "4", "same": "1"})


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


def test_artifacts_hold_no_vars_and_that_is_reported_where_it_matters() -> None:
    (note,) = map(str, picked(incremental(RECENT), incremental(RECENT)).notes)
    assert note.startswith("dbt writes no vars into its artifacts") and "(a)" in note
    assert picked(*with_vars(incremental(RECENT), incremental(RECENT))).notes == []
    assert picked(incremental("select 1"), incremental("select 1")).notes == []


def test_a_var_of_a_hook_of_the_run_counts_or_is_reported() -> None:
    for hook in ("delete from s.b where id > {{ var('days') }}", "{{ inserts(ref('b')) }}"):
        sides = on_run(hook), on_run(hook)
        assert names(*with_vars(*sides)) == ["of_b", "of_reader"]
        (note,) = map(str, picked(*sides).notes)
        assert note.startswith("dbt writes no vars into its artifacts") and "on-run-start-0" in note
    (note,) = map(
        str, picked(*(on_run("delete from s.b where {{ env_var('DAYS') }}") for _ in "ab")).notes
    )
    assert note.startswith("dbt writes only environment variables") and "on-run-start-0" in note


# --- environment variables ------------------------------------------------------------------------

CUSTOM = "DBT_ENV_CUSTOM_ENV_DAYS"


def with_environment(base: Project, head: Project, name: str = "DAYS") -> tuple[Project, Project]:
    base.metadata.env, head.metadata.env = {name: "3", "SAME": "1"}, {name: "4", "SAME": "1"}
    return base, head


def python(code: str) -> Project:
    a = node("model.p.a", None, RAW, raw=code, language="python")
    return project(
        orders(), a, check("t", "select id from s.a", "model.p.a"), catalog=LISTED, macros=[]
    )


def with_own_materialization(text: str) -> Project:
    own = macro("macro.p.materialization_table_default", text)
    a = node("model.p.a", "select id, amount from s.orders", RAW)
    test = check("t", "select id from s.a", "model.p.a")
    return project(orders(), a, test, catalog=LISTED, macros=[own])


@pytest.mark.parametrize(
    "made",
    [
        lambda: incremental(RECENT.replace("var('days')", f"env_var('{CUSTOM}', '1')")),
        lambda: incremental(RECENT.replace("var('days')", "env_var('DBT_ENV_' ~ rest)")),
        lambda: incremental(RECENT.replace("var('days')", "context['env_var']('X')")),
        lambda: incremental(
            "select 1", hook=f"delete from {{{{ this }}}} where {{{{ env_var('{CUSTOM}') }}}}"
        ),
        lambda: python(f"import os\ndef model(dbt, s): return os.environ['{CUSTOM}']"),
        lambda: python(f"import os\ndef model(dbt, s): return os.getenv('{CUSTOM}', 'x')"),
        lambda: python("import os\ndef model(dbt, s): return dict(os.environ)"),
        lambda: with_own_materialization(f"... {{{{ env_var('{CUSTOM}') }}}}"),
    ],
)
def test_an_environment_variable_that_is_known_to_differ_counts(made: Any) -> None:
    assert names(*with_environment(made(), made())) == ["t"]
    other = "WEEKS"
    asked_by_name = CUSTOM in repr([n.raw_code for n in made().nodes.values()])
    if asked_by_name:
        assert names(*with_environment(made(), made(), other)) == []


def test_analyses_that_were_made_before_are_made_anew() -> None:
    raw = RECENT.replace("var('days')", f"env_var('{CUSTOM}')")
    base, head = incremental(raw), incremental(raw)
    analyses = {"base_analysis": analyse(base), "head_analysis": analyse(head)}
    assert names(*with_environment(base, head), **analyses) == ["t"]
    assert names(base, base, **analyses) == []


def test_an_environment_variable_of_compiled_code_counts_by_what_it_compiles_to() -> None:
    raw = f"select id, amount, {{{{ env_var('{CUSTOM}') }}}} from x"
    assert names(*with_environment(incremental(raw), incremental(raw))) == []


@pytest.mark.parametrize(
    ("made", "noted"),
    [
        (lambda: incremental(RECENT.replace("var('days')", "env_var('DAYS')")), True),
        (lambda: incremental("select 1", hook="delete {{ env_var('DAYS') }}"), True),
        (lambda: python("import os\ndef model(dbt, s): return os.environ['DAYS']"), True),
        (lambda: with_own_materialization("{{ env_var('DAYS') }}"), True),
        (lambda: incremental("select 1", hook=f"delete {{{{ env_var('{CUSTOM}') }}}}"), False),
        (lambda: incremental("select {{ env_var('DAYS') }}"), False),
        (lambda: python("def model(dbt, s): return s"), False),
    ],
)
def test_artifacts_hold_few_environment_variables_and_that_is_reported(
    made: Any, noted: bool
) -> None:
    notes = [*map(str, picked(made(), made()).notes)]
    assert [n.startswith("dbt writes only environment variables") for n in notes] == [True] * noted
    same = [made().having(same_environment=True) for _ in range(2)]
    assert picked(*same).notes == []


# --- hooks as people have them ---------------------------------------------------------------------

KEEPING = [
    "grant select on {{ this }} to reporter",
    "{% for role in ['a', 'b'] %}grant select on {{ this }} to {{ role }};{% endfor %}",
    "{{ 'grant select on ' ~ this ~ ' to reporter' if target.name == 'prod' else '' }}",
    "analyze table {{ this }} compute statistics",
    "optimize {{ this }} zorder by (id)",
    "vacuum {{ this }}",
    "comment on table {{ this }} is 'of {{ model.name }}'",
    "alter table {{ this }} set tblproperties ('owner' = '{{ var(\"owner\", \"me\") }}')",
    "create index if not exists i on {{ this }} (id)",
    "alter table {{ this }} add constraint pk primary key (id)",
    "select count(*) from {{ this }}",
    "{% do log('built ' ~ this, info=true) %}",
    "{% set found = run_query('select max(id) from ' ~ this) %}{% do log(found) %}",
    "{% if execute %}{% for n in graph.nodes.values() %}{% do log(n.name) %}{% endfor %}{% endif %}",
]
WITH_A_TARGET = [
    "{% for s in schemas %}insert into s.b select '{{ s }}';{% endfor %}",
    "{% for r in results %}insert into s.b values ('{{ r.node.name }}', '{{ r.status }}');{% endfor %}",
    "{% for n in graph.nodes.values() if n.resource_type == 'model' %}"
    '{% do run_query("insert into s.b values (\'" ~ n.name ~ "\')") %}{% endfor %}',
    '{% set rows = [] %}{% for r in results %}{% do rows.append("(\'" ~ r.status ~ "\')") %}{% endfor %}'
    "{% if rows %}insert into s.b values {{ rows | join(', ') }}{% endif %}",
    "insert into s.b values ('{{ invocation_id }}', '{{ run_started_at.strftime(\"%Y\") }}')",
    "delete from s.b where at < current_date - {{ var('days', 30) }}",
    "{% if var('audit', true) %}insert into {{ target.schema }}.b values ('{{ target.name }}'){% endif %}",
]


@pytest.mark.parametrize("hook", KEEPING)
def test_a_hook_that_keeps_rows_selects_nothing(hook: str) -> None:
    """Neither with its node nor at the end of a run; its node is built where the hook changed."""
    assert names(writing(None), writing(hook)) == []
    assert picked(writing(None), writing(hook)).models == ["model.p.a"]
    if "this" not in hook:
        assert names(on_run(end=True), on_run(hook, end=True)) == []


@pytest.mark.parametrize("hook", WITH_A_TARGET)
def test_a_hook_with_a_literal_target_changes_what_reads_that(hook: str) -> None:
    for base, head in (
        (writing(None), writing(hook)),
        (on_run(end=True), on_run(hook, end=True)),
        (on_run(hook, end=True), on_run(hook + ";delete from s.b", end=True)),
    ):
        selection = picked(base, head)
        assert [test.name for test in selection.tests] == ["of_b", "of_reader"]
        assert not [n for n in selection.notes if n.code == Code.EVERY_TEST_SELECTED]


def test_ripple_yml_says_what_hooks_write() -> None:
    def said(hook: str, *relations: str) -> Project:
        return on_run(hook).having(hook_writes=relations)

    assert names(said("call refresh()", "b"), said("call refresh(1)", "b")) == ["of_b", "of_reader"]
    assert names(said("call refresh()", "s.c"), said("call refresh(1)", "s.c")) == ["of_c"]
    assert names(said("call refresh()"), said("call refresh(1)")) == []
    by_name = "{{ context.get('by_string')() }}"  # which is followed by its string only
    assert names(said(by_name, "s.c"), said(f"{by_name};select 1", "s.c")) == ["of_b", "of_reader"]
    # What is known of a hook holds whatever the file says.
    assert names(said("delete from s.b"), said("delete from s.b where id = 1")) == [
        "of_b",
        "of_reader",
    ]


def test_a_package_that_is_known_by_its_macros(monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = "{% macro upload() %}{{ no_one_knows() }}{% endmacro %}"

    def side(text: str, *more: Macro, a: str = C) -> Project:
        made = on_run("{{ pack.upload() }}", end=True, a=a)
        made.nodes["model.pack.own"] = node("model.pack.own", "select 1 as id", RAW)
        made.nodes["test.pack.of_own"] = node(
            "test.pack.of_own", "select id from s.own", "model.pack.own"
        )
        macros_of_side = [*made.macros.values(), macro("macro.pack.upload", text), *more]
        return project(*made.nodes.values(), catalog=LISTED, macros=macros_of_side)

    edited = C + " where id > 1"
    every = ["of_b", "of_reader", "of_c", "of_own"]
    assert names(side(uploads), side(uploads + " ", a=edited)) == every
    digest = known_hooks.digest_of([macro("macro.pack.upload", uploads)])
    entry = {"hooks": {"upload": known_hooks.OWN_RELATIONS}, "digests": {digest: "1.0"}}
    monkeypatch.setattr(known_hooks, "known_packages", lambda: {"pack": entry})
    # Its own tests, and no other: it may tell of all that there is.
    assert names(side(uploads), side(uploads, a=edited)) == ["of_own"]
    # A fork, and a project that replaces a macro of it, are not known.
    fork = uploads.replace("no_one_knows", "someone_knows")
    assert names(side(uploads), side(fork)) == every
    shim, own = (
        macro(f"macro.{p}.default__tidy", "{% macro default__tidy() %}{% endmacro %}")
        for p in ("pack", "p")
    )
    with_shim = known_hooks.digest_of([macro("macro.pack.upload", uploads), shim])
    entry["digests"] = {with_shim: "1.1"}
    assert names(side(uploads, shim), side(uploads, shim, a=edited)) == ["of_own"]
    # What it does is then not known on both sides, and the same.
    assert names(side(uploads, shim, own), side(uploads, shim, own, a=edited)) == []
