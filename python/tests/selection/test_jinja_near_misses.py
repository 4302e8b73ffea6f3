"""Jinja that is almost, but not quite, the same: each pair is told apart by the tests it selects.

What is right here follows from what Jinja and dbt do with the text, however it is read.
"""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, picked, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.changes.comparability import with_variables

SQL = "select id, amount from s.orders"
INCREMENTAL = {"materialized": "incremental"}
MICROBATCH = {
    "materialized": "incremental",
    "incremental_strategy": "microbatch",
    "event_time": "amount",
    "begin": "2026-01-01",
    "batch_size": "day",
    "lookback": 1,
}


def side(
    raw: str = SQL,
    *macros: Macro,
    config: dict[str, Any] | None = None,
    hook: str = "",
    calls: tuple[str, ...] = (),
    on_run: str = "",
    b: str = "select id from s.orders",
    **more: Any,
) -> Project:
    """orders -> m with the test t, and orders -> b with the test of_b; compiled SQL is always `SQL`."""
    settings = dict(config or {})
    if hook:
        settings["post-hook"] = [{"sql": hook}]
    m = node("model.p.m", SQL, RAW, raw=raw, config=settings, macros=list(calls), **more)
    runs = [node("operation.p.p-on-run-end-0", None, raw=on_run)] if on_run else []
    return project(
        orders(),
        m,
        node("model.p.b", b, RAW),
        check("t", "select id from s.m where id is null", "model.p.m"),
        check("of_b", "select id from s.b where id is null", "model.p.b"),
        *runs,
        catalog=LISTED,
        macros=macros,
        adapter="duckdb",
    )


def grows(raw: str, *macros: Macro, **more: Any) -> Project:
    return side(raw, *macros, config=INCREMENTAL, **more)


def wrong(why: str, *values: Any) -> Any:
    """A case whose answer is not right yet."""
    return pytest.param(*values, marks=pytest.mark.xfail(strict=True, reason=why))


def variable(base: Project, head: Project, name: str = "days") -> tuple[Project, Project]:
    """Both sides, on which this var has different values."""
    return with_variables(base, head, {name: "3"}, {name: "4"})


def environment(base: Project, head: Project) -> tuple[Project, Project]:
    """Both sides, on which the environment variable ``DBT_ENV_CUSTOM_ENV_DAYS`` has different values."""
    base.metadata.env, head.metadata.env = {"DAYS": "3"}, {"DAYS": "4"}
    return base, head


# --- what decides the SQL of a later run ---------------------------------------------------------

ASKS = "{% set inc = is_incremental() %}"
WORDS = "an attribute, or a variable of the text's own, counts as what has that name"
OPAQUE = [  # where it is not known which part decides
    "{% set limit %}{% if is_incremental() %}where id > 3{% endif %}{% endset %}SELECT {{ limit }}",
    "{% macro above() %}where id > 3{% endmacro %}"
    "SELECT {% if is_incremental() %}{{ above() }}{% endif %}",
    "SELECT {% filter upper %}{% if is_incremental() %} where id > 3 {% endif %}{% endfilter %}",
    "SELECT {% call(x) each() %}{% if is_incremental() %} where id > 3 {% endif %}{% endcall %}",
    "SELECT {% set f = is_incremental %}{% if f() %} where id > 3 {% endif %}",
]
FOLLOWED = [
    "SELECT {% if is_incremental() %} where id > 3 {% endif %}",
    "SELECT {% if not is_incremental() %} {% else %} where id > 3 {% endif %}",
    "SELECT {% if x %} {% elif is_incremental() %} where id > 3 {% endif %}",
    "SELECT {% if x %}{% if is_incremental() %} where id > 3 {% endif %}{% endif %}",
    "{% if is_incremental() %}{% set above = 'where id > 3' %}{% endif %}SELECT {{ above }}",
    "{% set above = 'where id > 3' %}SELECT {% if is_incremental() %} {{ above }} {% endif %}",
    "SELECT {% if not flags.FULL_REFRESH %} where id > 3 {% endif %}",
    "SELECT {% if not should_full_refresh() %} where id > 3 {% endif %}",
    "SELECT {% if dbt.is_incremental() %} where id > 3 {% endif %}",
]
BY_A_NAME = [
    f"{ASKS}SELECT {{% if inc %}} where id > 3 {{% endif %}}",
    f"{ASKS}{{% set later = inc %}}SELECT {{% if later and true %}} where id > 3 {{% endif %}}",
    "{%- set inc = is_incremental() -%}SELECT {{ 'where id > 3' if inc else '' }}",
    "SELECT {{ 'where id > 3' if is_incremental() }}",
    "SELECT {{ ['', 'where id > 3'][is_incremental() | int] }}",
    "{% set ns = namespace(inc=is_incremental()) %}SELECT {% if ns.inc %} where id > 3 {% endif %}",
    "{% set ns = namespace() %}{% set ns.inc = is_incremental() %}"
    "SELECT {% if ns['inc'] %} where id > 3 {% endif %}",
    "{% set c = {'inc': is_incremental()} %}SELECT {% if c['inc'] %} where id > 3 {% endif %}",
    "SELECT {% for one in [1] if is_incremental() %} where id > 3 {% endfor %}",
    "SELECT {% if not flags['FULL_REFRESH'] %} where id > 3 {% endif %}",
]


@pytest.mark.parametrize("raw", [*FOLLOWED, *BY_A_NAME, *OPAQUE])
def test_a_branch_of_a_later_run_counts_however_it_is_asked_for(raw: str) -> None:
    raw = raw.replace("SELECT", SQL)
    assert names(grows(raw), grows(raw.replace("3", "4"))) == ["t"]
    assert names(grows(raw), grows(raw)) == []
    # What does not decide what is written.
    assert names(grows(raw), grows("{# why #}" + raw)) == []


def test_a_branch_counts_where_its_question_is_looked_up_by_name() -> None:
    raw = f"{SQL} {{% if context['is_incremental']() %}} where id > 3 {{% endif %}}"
    assert names(grows(raw), grows(raw.replace("3", "4"))) == ["t"]


@pytest.mark.parametrize("raw", [*FOLLOWED, *BY_A_NAME])
def test_what_is_compiled_beside_a_branch_counts_by_what_it_compiles_to(raw: str) -> None:
    raw = raw.replace("SELECT", "select id, amount from s.orders as o")
    assert names(grows(raw), grows(raw.replace("s.orders as o", "s.orders as p"))) == []


@pytest.mark.parametrize(
    ("raw", "edited"),
    [
        (f"{SQL} {{# if is_incremental() where id > 3 #}}", ("3", "4")),
        (f"{SQL} {{% raw %}}{{% if is_incremental() %}}{{% endraw %}} -- 3", ("3", "4")),
        ("{{ 'is_incremental()' }} where id > 3", ("3", "4")),
        ("{{ config(full_refresh=false) }} -- 3", ("3", "4")),
        ("{{ config(unique_key='is_incremental') }} -- 3", ("3", "4")),
    ],
)
def test_a_text_that_only_says_the_words_has_no_branch(raw: str, edited: tuple[str, str]) -> None:
    assert names(grows(raw), grows(raw.replace(*edited))) == []


@pytest.mark.parametrize(
    ("raw", "counts"),
    [
        ("SELECT {% if is_incremental() %} where id > {{ var('days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ var(name='days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ var('days') | int }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ builtins.var('days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %}{% set v = var %} > {{ v('days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %}{% if var.has_var('days') %} 1 {% endif %}{% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ builtins[which]('days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ builtins.get('var')('days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ (builtins | attr('var'))('days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ var(*['days']) }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ var(**{'name': 'days'}) }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} where id > {{ ['days'] | map('upper') | map(var) }} {% endif %}", True),
        ("{% set d = var('days') %}SELECT {% if is_incremental() %} where id > {{ d }} {% endif %}", True),
        ("{% set inc = is_incremental() %}SELECT {% if inc %} id > {{ var('days') }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ var(\"da\" \"ys\") }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ \"{{ var('days') }}\" }} {% endif %}", False),
        ("SELECT {% if is_incremental() %} {# {{ var('days') }} #} {% endif %}", False),
        ("SELECT {% if is_incremental() %} {{ var('weeks', 'days') }} {% endif %}", False),
        ("SELECT {% if is_incremental() %} where s = 'var(days)' {% endif %}", False),
        wrong(WORDS, "SELECT {% if is_incremental() %} {{ x.var('days') }} {% endif %}", False),
        ("SELECT {% if is_incremental() %} 1 {% endif %} {{ var('days') }}", False),
        ("SELECT {{ '{#' }} {% if is_incremental() %} {{ var('days') }} {% endif %} {{ '#}' }}", True),
    ],
)  # fmt: skip
def test_which_var_a_branch_asks_for(raw: str, counts: bool) -> None:
    raw = raw.replace("SELECT", SQL)
    assert names(*variable(grows(raw), grows(raw))) == (["t"] if counts else [])


TIDY = "{% macro tidy() %}delete from {{ this }} where id = 3{% endmacro %}"


@pytest.mark.parametrize(
    ("raw", "counts"),
    [
        ("SELECT {% if is_incremental() %} {{ tidy() }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ p.tidy() }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ p['tidy']() }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ p['ti' ~ 'dy']() }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ p.get('tidy')() }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ (p | attr('tidy'))() }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {% for f in p.values() %}{{ f() }}{% endfor %} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ adapter['dispatch']('tidy', 'p')() }} {% endif %}", True),
        ("{% set d = adapter.dispatch %}SELECT {% if is_incremental() %} {{ d('tidy', 'p')() }} {% endif %}", True),
        ("{% set f = tidy %}SELECT {% if is_incremental() %} {{ f() }} {% endif %}", True),
        ("{% set all = [tidy] %}SELECT {% if is_incremental() %} {{ all[0]() }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ tidy() | trim }} {% endif %}", True),
        ("SELECT {% if is_incremental() %} {{ render('{{ tidy() }}') }} {% endif %}", True),
        wrong(WORDS, "SELECT {% if is_incremental() %} {{ x.tidy }} {% endif %}", False),
        ("SELECT {% if is_incremental() %} {{ 'tidy()' }} {% endif %}", False),
        ("SELECT {% if is_incremental() %} {# {{ tidy() }} #} 1 {% endif %}", False),
        ("SELECT {% if is_incremental() %} tidy() {% endif %}", False),
        wrong(WORDS, "{% set tidy = 1 %}SELECT {% if is_incremental() %} {{ tidy }} {% endif %}", False),
        wrong(WORDS, "SELECT {% if is_incremental() %}{% for tidy in [1] %}{{ tidy }}{% endfor %}{% endif %}", False),
        ("SELECT {% if is_incremental() %}{{ other(tidy=1) }}{% endif %}", False),
        ("SELECT {% if is_incremental() %}{{ other({'tidy': 1}) }}{% endif %}", False),
        ("SELECT {% if is_incremental() %} 1 {% endif %} {{ tidy() }}", False),
    ],
)  # fmt: skip
def test_which_macro_a_branch_calls(raw: str, counts: bool) -> None:
    raw = raw.replace("SELECT", SQL)
    other = macro("macro.p.other", "{% macro other(tidy) %}{{ tidy }}{% endmacro %}")
    base, head = (
        grows(raw, macro("macro.p.tidy", text), other) for text in (TIDY, TIDY.replace("3", "4"))
    )
    assert names(base, head) == (["t"] if counts else [])
    assert names(base, base) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lookback", 3),
        ("begin", "2025-01-01"),
        ("batch_size", "hour"),
        ("event_time", "id"),
    ],
)
def test_what_a_microbatch_is_cut_by(key: str, value: Any) -> None:
    """Of another strategy, and of a table, dbt does not look at it."""
    base = side(config=MICROBATCH)
    assert names(base, side(config={**MICROBATCH, key: value})) == ["t"]
    for other in ({"incremental_strategy": "append"}, {"materialized": "table"}):
        of = {**MICROBATCH, **other}
        assert names(side(config=of), side(config={**of, key: value})) == []


# --- what a hook reads ---------------------------------------------------------------------------

LIMIT = {"meta": {"limit": 3, "owner": "x"}}
OTHER_LIMIT = {"meta": {"limit": 4, "owner": "x"}}
OTHER_OWNER = {"meta": {"limit": 3, "owner": "y"}}
READS_IT = macro("macro.p.reads_it", "{% macro reads_it(m) %}{{ m.meta.limit }}{% endmacro %}")
FIRST = macro("macro.p.first", "{% macro first() %}{{ varargs[0].meta.limit }}{% endmacro %}")
KEYED = macro("macro.p.keyed", "{% macro keyed() %}{{ kwargs.m['meta'].limit }}{% endmacro %}")
PASSES = macro(
    "macro.p.passes",
    "{% macro passes() %}{{ reads_it(*varargs, **kwargs) }}{% endmacro %}",
    "macro.p.reads_it",
)
CALLER = macro("macro.p.wraps", "{% macro wraps() %}x{{ caller() }}{% endmacro %}")


@pytest.mark.parametrize(
    "read",
    [
        "{{ model.meta.limit }}",
        "{{ model['meta']['limit'] }}",
        "{{ model.meta['limit'] }}",
        "{{ model['meta'].limit }}",
        "{{ model['config']['meta']['limit'] }}",
        "{{ config.get('meta')['limit'] }}",
        "{{ config.get('meta', {}).get('limit', 0) }}",
        "{{ (config.get('meta') or {})['limit'] }}",
        "{{ model.meta | attr('limit') }}",
        "{{ [model] | map(attribute='meta.limit') | first }}",
        "{{ [model][0].meta.limit }}",
        "{% set it = model %}{{ it.meta.limit }}",
        "{% set ns = namespace(it=model) %}{{ ns.it.meta.limit }}",
        "{% with it = model %}{{ it.meta.limit }}{% endwith %}",
        "{% for it in [model] %}{{ it.meta.limit }}{% endfor %}",
        "{% set key = 'limit' %}{{ model.meta[key] }}",
        "{{ reads_it(model) }}",
        "{{ reads_it(m=model) }}",
        "{{ first(model) }}",
        "{{ keyed(m=model) }}",
        "{{ passes(model) }}",
        "{{ passes(m=model) }}",
        "{% call wraps() %}{{ model.meta.limit }}{% endcall %}",
        "{% filter upper %}{{ model.meta.limit }}{% endfilter %}",
        "{{ '%s' | format(model.meta.limit) }}",
        "{{ '{}'.format(model.meta.limit) }}",
        "{{ f'x' if false else model.meta.limit }}".replace("f'x'", "'x'"),
        "{% if model.meta.limit > 3 %} or true {% endif %}",
        "{{ '{#' ~ model.meta.limit ~ '#}' }}",
    ],
)
def test_a_property_is_read_however_that_is_written(read: str) -> None:
    """The one that is read counts, and so it does where it is not known which one that is."""
    hook = f"delete from {{{{ this }}}} where id = 1 -- '\n and x = '{read}'"
    macros = (READS_IT, FIRST, KEYED, PASSES, CALLER)
    base = side(SQL, *macros, config=LIMIT, hook=hook)
    assert "t" in names(base, side(SQL, *macros, config=OTHER_LIMIT, hook=hook))


@pytest.mark.parametrize(
    "read",
    [
        "{{ model.meta.limit }}",
        "{{ model['meta']['limit'] }}",
        "{{ model['config']['meta']['limit'] }}",
        "{{ config.get('meta', {}).get('limit', 0) }}",
        wrong("a property in brackets counts whole", "{{ (config.get('meta') or {})['limit'] }}"),
        "{# {{ model | tojson }} #}",
        "{{ 'model' }}",
        wrong(WORDS, "{{ x.model }}"),
        wrong(WORDS, "{{ x['model'] }}"),
        "{% raw %}{{ model | tojson }}{% endraw %}",
        "{{ x(model=3) }}",
        "{{ {'model': 3} }}",
        "{% set model = {'meta': 1} %}{{ model }}",
        "{% for model in ['a'] %}{{ model }}{% endfor %}",
    ],
)
def test_a_property_that_no_hook_reads_does_not_count(read: str) -> None:
    hook = f"delete from {{{{ this }}}} where id = 1 and x = '{read}'"
    base = side(config=LIMIT, hook=hook)
    assert names(base, side(config=OTHER_OWNER, hook=hook)) == []


# --- what a hook does ----------------------------------------------------------------------------

RUNS = macro("macro.p.runs", "{% macro runs(q) %}{% do run_query(q) %}{% endmacro %}")
RUNS_ITS_CALLER = macro(
    "macro.p.runs_its_caller",
    "{% macro runs_its_caller() %}{% do run_query(caller()) %}{% endmacro %}",
)
RUNS_VARARGS = macro(
    "macro.p.runs_varargs",
    "{% macro runs_varargs() %}{% for q in varargs %}{% do run_query(q) %}{% endfor %}{% endmacro %}",
)
RUNS_KWARGS = macro(
    "macro.p.runs_kwargs",
    "{% macro runs_kwargs() %}{% do run_query(kwargs['q']) %}{% endmacro %}",
)
EMPTIES = macro("macro.p.empties", "{% macro empties(b='b') %}truncate {{ ref(b) }}{% endmacro %}")
DOERS = (RUNS, RUNS_ITS_CALLER, RUNS_VARARGS, RUNS_KWARGS, EMPTIES)


PUT_TOGETHER = [
    "{% set q = 'delete from %s' | format(ref('b')) %}{{ q }}",
    "{{ 'delete from {}'.format(ref('b')) }}",
    "{{ ['delete from', 's.b'] | join(' ') }}",
]
WRITES = [
    "delete from {{ ref('b') | string }}",
    "delete from {{ ref('b') | upper }}",
    "delete from {{ (ref('b')) }}",
    "delete from {{ builtins.ref('b') }}",
    "delete from {{ builtins['ref']('b') }}",
    "delete from {{ ref('p', 'b') }}",
    "delete from {{ ref(model_name='b') if false else ref('b') }}",
    "delete from {{ this.schema }}.b",
    "delete from {{ this['schema'] }}.b",
    "delete from {{ target['schema'] }}.b",
    "delete from {{- ' ' }}s.b",
    "delete {#- all of it -#} from s.b".replace("{#-", "{#").replace("-#}", "#}"),
    "{% set it = ref('b') %}delete from {{ it }}",
    "{% set ns = namespace(it=ref('b')) %}delete from {{ ns.it }}",
    *PUT_TOGETHER,
    "{% filter lower %}DELETE FROM S.B{% endfilter %}",
    "{% call statement('x', auto_begin=true) %}delete from s.b{% endcall %}",
    "{% call noop_statement('x', 'y') %}delete from s.b{% endcall %}",
    "{% call runs_its_caller() %}delete from s.b{% endcall %}",
    "{% set q %}delete from s.b{% endset %}{% do run_query(q) %}",
    "{% set q %}delete from s.b{% endset %}{{ runs(q | trim) }}",
    "{{ runs(q='delete from ' ~ ref('b')) }}",
    "{{ runs_varargs('select 1', 'delete from s.b') }}",
    "{{ runs_kwargs(q='delete from s.b') }}",
    "{% set ns = namespace(q='') %}{% set ns.q = 'delete from s.b' %}{% do run_query(ns.q) %}",
    "{% for t in ['b'] %}delete from {{ ref(t) }};{% endfor %}",
    "{% do adapter.truncate_relation(ref('b')) %}",
    "{% do adapter['truncate_relation'](ref('b')) %}",
    "{% set do_it = adapter.truncate_relation %}{{ do_it(ref('b')) }}",
    "{{ empties() }}",
    "{{ p.empties() }}",
    "{{ p['empties']() }}",
    "{{ p.get('empties')() }}",
    "{{ p['emp' ~ 'ties']() }}",
    "{{ (p | attr('empties'))() }}",
    "{{ context['empties']() }}",
    "{{ context['p']['empties']() }}",
    "{{ adapter.dispatch('empties', 'p')() }}",
    "{% set f = empties %}{{ f() }}",
    "{{ render('{{ empties() }}') }}",
    "{{ empties(b='b') }}",
    "{% if execute %}{{ return('delete from s.b') }}{% endif %}",
    "{{ 'select 1' if 1 == 2 else 'delete from s.b' }}",
]


@pytest.mark.parametrize("hook", WRITES)
def test_a_hook_that_writes_however_that_is_written(hook: str) -> None:
    """What reads the relation is selected; where it is not known which one it is, more may be."""
    base, head = side(SQL, *DOERS), side(SQL, *DOERS, hook=hook)
    assert "of_b" in names(base, head)
    assert "of_b" in names(head, side(SQL, *DOERS, hook=hook + "\n;select 2"))


OF_ANYTHING = (
    "a macro with kwargs or varargs reads all of the config, and the text of hooks is there"
)


FOLLOWED_BY_NAME = [h for h in WRITES if "context" not in h and "render" not in h]
"""Those that cannot read the whole config of their node, in which their own text is."""


@pytest.mark.parametrize(
    "hook",
    [wrong(OF_ANYTHING, h) if "args(" in h or "p['emp' ~" in h else h for h in FOLLOWED_BY_NAME],
)
def test_a_comment_of_jinja_in_a_hook_changes_nothing(hook: str) -> None:
    base, head = (side(SQL, *DOERS, hook=text) for text in (hook, "{# why #}" + hook))
    assert names(base, head) == []


@pytest.mark.parametrize(
    "hook",
    [
        "{# delete from s.b #}grant select on {{ this }} to me",
        "grant select on {{ this }} to me {# {{ runs('delete from s.b') }} #}",
        "{% do log('delete from s.b') %}",
        "{{ log('delete from ' ~ ref('b'), info=true) }}",
        "{% do exceptions.warn('delete from s.b') %}",
        "comment on table {{ this }} is '{{ \"delete from s.b\" }}'",
        "{% set unused = 'delete from s.b' %}grant select on {{ this }} to me",
        "{% set q %}select * from s.b{% endset %}{% do run_query(q) %}",
        "{{ runs('select count(*) from ' ~ ref('b')) }}",
        "{% call runs_its_caller() %}grant select on s.b to me{% endcall %}",
    ],
)
def test_a_hook_that_only_says_the_words_writes_nothing(hook: str) -> None:
    assert "of_b" not in names(side(SQL, *DOERS), side(SQL, *DOERS, hook=hook))


@pytest.mark.parametrize(
    "hook",
    [
        "grant select on {{ this }} to me",
        "analyze {{ this }}",
        "comment on table {{ this }} is 'orders'",
        "select count(*) from {{ this }}",
        "select 1",
        "{{ log('built ' ~ this, info=true) }}",
        "{% do run_query('select 1 from s.b') %}",
        "insert into s.elsewhere select id from {{ this }}",
        "delete from {{ ref('b') }}",
    ],
)
def test_a_hook_that_leaves_its_own_rows_changes_no_test_of_them(hook: str) -> None:
    assert "t" not in names(side(SQL, *DOERS), side(SQL, *DOERS, hook=hook))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 'a{{ var('y') }} b'", "x = 'a{{ var('y') -}} b'"),
        ("x = 'a {{ var('y') }}b'", "x = 'a {{- var('y') }}b'"),
        ("x = 'a {% if var('y') %}b{% endif %}'", "x = 'a {%- if var('y') %}b{% endif %}'"),
        ("x = 'a {# why #}b'", "x = 'a {#- why #}b'"),
        ("x = 'a  b'", "x = 'a b'"),
        ("x = '{{ 'a  b' }}'", "x = '{{ 'a b' }}'"),
        ("x = '{% raw %}a  b{% endraw %}'", "x = '{% raw %}a b{% endraw %}'"),
        ("x = '{{ \"{#\" }}' and y = 3 -- {{ '#}' }}", "x = '{{ \"{#\" }}' and y = 4 -- {{ '#}' }}"),
    ],
)  # fmt: skip
def test_white_space_of_a_literal_is_data(one: str, other: str) -> None:
    hook = "delete from {{ this }} where "
    assert names(side(hook=hook + one), side(hook=hook + other)) == ["t"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("where id = 3", "where\n  id = 3"),
        ("where {{ f(1,2) }}", "where {{ f(1, 2) }}"),
        ("where {{f(1)}}", "where {{ f( 1 ) }}"),
        ("where {{ f('a') }}", 'where {{ f("a") }}'),
        ("where {% if x %} a {% endif %}", "where {%- if x %} a {%- endif %}".replace("{%-", "{%")),
        ("where id = 3 {#- why -#} ", "where id = 3"),
    ],
)
def test_white_space_and_comments_of_jinja_are_no_data(one: str, other: str) -> None:
    hook = "delete from {{ this }} "
    assert names(side(hook=hook + one), side(hook=hook + other)) == []


# --- what is asked for beside SQL ----------------------------------------------------------------


@pytest.mark.parametrize("of", ["variable", "environment"])
def test_a_value_in_the_body_of_a_function(of: str) -> None:
    """dbt builds it from its code; no compiled SQL of its own is in the artifacts."""
    name = "var('days')" if of == "variable" else "env_var('DBT_ENV_CUSTOM_ENV_DAYS')"

    def with_function(body: str) -> Project:
        function = node("function.p.f", None, raw=body)
        m = node("model.p.m", "select s.f(id) as id from s.orders", RAW, "function.p.f")
        t = check("t", "select id from s.m where id is null", "model.p.m")
        return project(orders(), function, m, t, catalog=LISTED, adapter="duckdb")

    differ = variable if of == "variable" else environment
    body = f"x + {{{{ {name} }}}}"
    assert names(*differ(with_function(body), with_function(body))) == ["t"]
    assert names(*differ(with_function("x + 3"), with_function("x + 3"))) == []
    quoted = f"x + 3 {{# {name} #}}"
    assert names(*differ(with_function(quoted), with_function(quoted))) == []


def test_a_macro_that_the_body_of_a_function_calls() -> None:
    def with_function(limit: int) -> Project:
        limits = macro("macro.p.limit", f"{{% macro limit() %}}{limit}{{% endmacro %}}")
        function = node("function.p.f", None, raw="x + {{ limit() }}", macros=[limits.unique_id])
        m = node("model.p.m", "select s.f(id) as id from s.orders", RAW, "function.p.f")
        t = check("t", "select id from s.m where id is null", "model.p.m")
        return project(orders(), function, m, t, catalog=LISTED, adapter="duckdb", macros=[limits])

    assert names(with_function(3), with_function(4)) == ["t"]
    assert names(with_function(3), with_function(3)) == []


def test_a_macro_that_only_blind_compilation_reaches() -> None:
    """In CI's empty schema a star is `*`, whatever the macro leaves out: its text is all there is."""

    def starred(
        left_out: str, compiled: str = "select * from ci.stg", schema: str = "ci", **edits: str
    ) -> Project:
        star = macro(
            "macro.p.star",
            "{% macro star(r) %}{% for c in adapter.get_columns_in_relation(r) "
            "if c.name not in left_out() %}{{ c.name }}{% endfor %}{% endmacro %}",
            "macro.p.left_out",
        )
        below = macro("macro.p.left_out", f"{{% macro left_out() %}}{left_out}{{% endmacro %}}")
        beside = macro("macro.p.beside", edits.get("beside", "{% macro beside() %}{% endmacro %}"))
        raw = "select {{ star(ref('stg')) }} from {{ ref('stg') }}"
        a = node("model.p.a", compiled, "model.p.stg", raw=raw, macros=[star.unique_id])
        stg = node("model.p.stg", SQL, RAW)
        a, stg = (
            replace(each, schema=schema, relation_name=f"`{schema}`.`{each.name}`")
            for each in (a, stg)
        )
        t = check("t", f"select id from {schema}.a where id is null", "model.p.a")
        return project(orders(), stg, a, t, catalog=LISTED, macros=[star, below, beside])

    built = starred("{{ return(['x']) }}", "select id, amount from s.stg", "s")
    assert names(built, starred("{{ return(['x']) }}")) == []
    assert names(built, starred("{{ return(['amount']) }}")) == ["t"]
    assert names(built, starred("{{ return(['x']) }}", beside="{{ 1 }}")) == []


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("unnest([1, 2])", "unnest([1, 2])", False),
        ("unnest([1, 2])", "unnest([1, 2]) as x, unnest([1, 2])", True),
        ("unnest([1, 2]) as x, unnest([1])", "unnest([1, 2]) as x, unnest([3])", True),
        ("s.each(id)", "s.each(id) as x, s.each(id)", False),
        ("s.each(id)", "s.each(id) as x, s.each(amount)", True),
        ("s.each(id)", "s.each(id) as x, s.every(id)", True),
        ("s.each(id) as x, s.every(id)", "s.every(id) as x, s.each(id)", False),
        ("s.each(id)", "1", True),
    ],
)
def test_a_function_that_may_repeat_rows_met_twice(before: str, after: str, counts: bool) -> None:
    """Of functions that nobody here knows; the same call gives the same rows, side by side."""

    def of(listed: str) -> Project:
        m = node("model.p.m", f"select id, {listed} as y from s.orders", RAW)
        rows = check("rows", "select count(*) as n from s.m having count(*) > 9", "model.p.m")
        return project(orders(), m, rows, catalog=LISTED, adapter="duckdb")

    assert names(of(before), of(after)) == (["rows"] if counts else [])


# --- what is queried while compiling -------------------------------------------------------------

STG = "select id, amount from s.orders"
VALUE = "select id, amount + 1 as amount from s.orders"
COLUMN = "select id, amount, status from s.orders"
ALL_OF_IT = {VALUE, COLUMN}
RUN_QUERY = macro("macro.dbt.run_query", "{% call statement('x') %}{% endcall %}")
LISTS = macro(
    "macro.p.lists",
    "{% macro lists(r) %}{% for c in adapter.get_columns_in_relation(r) %}{{ c.name }}{% endfor %}"
    "{% endmacro %}",
)
PASSES_ON = macro("macro.p.passes_on", "{% macro passes_on(f, x) %}{{ f(x) }}{% endmacro %}")


@pytest.mark.parametrize(
    ("raw", "moves"),
    [
        ("{{ run_query('select 1 from ' ~ ref('stg')) }}", ALL_OF_IT),
        ("{% set ask = run_query %}{{ ask('select 1') }}", ALL_OF_IT),
        ("{{ passes_on(run_query, 'select 1') }}", ALL_OF_IT),
        ("{{ [run_query][0]('select 1') }}", ALL_OF_IT),
        ("{% set a = adapter %}{{ a.execute('select 1') }}", ALL_OF_IT),
        ("{{ adapter['execute']('select 1') }}", ALL_OF_IT),
        ("{% call statement('q', fetch_result=true) %}select 1{% endcall %}", ALL_OF_IT),
        ("{% set s = statement %}{% call s('q') %}select 1{% endcall %}", ALL_OF_IT),
        ("{{ context['run_query']('select 1') }}", ALL_OF_IT),
        ("{{ load_result('q') }}", ALL_OF_IT),
        ("{{ adapter.get_columns_in_relation(ref('stg')) | map(attribute='name') }}", {COLUMN}),
        ("{{ adapter['get_columns_in_relation'](ref('stg'))[0].name }}", {COLUMN}),
        ("{{ lists(ref('stg')) }}", {COLUMN}),
        ("{{ p['lists'](ref('stg')) }}", {COLUMN}),
        ("{% set f = lists %}{{ f(ref('stg')) }}", {COLUMN}),
        ("{{ passes_on(lists, ref('stg')) }}", {COLUMN}),
        ("{# {{ run_query('select 1') }} #}", set()),
        ("{% raw %}{{ run_query('select 1') }}{% endraw %}", set()),
        ("{{ \"{{ run_query('select 1') }}\" }}", set()),
        ("select run_query(1), adapter.x", set()),
        ("{{ adapter.quote('run_query') }} {{ adapter['type']() }}", set()),
        ("{{ passes_on(x, 'run_query') }}", set()),
    ],
)  # fmt: skip
def test_what_is_queried_while_compiling_however_that_is_written(raw: str, moves: set[str]) -> None:
    def of(stg: str) -> Project:
        calls = [m for m in (RUN_QUERY, LISTS, PASSES_ON) if m.name in raw and "#" not in raw]
        called = [m.unique_id for m in calls]
        a = node("model.p.a", "select 1 as x from s.stg", "model.p.stg", raw=raw, macros=called)
        below = "select min(x) as x from s.a having min(x) > 1"
        return project(
            orders(),
            node("model.p.stg", stg, RAW),
            a,
            node("model.p.b", below, "model.p.a", config={"materialized": "view"}),
            check("t", "select max(x) as x from s.b", "model.p.b"),
            catalog=LISTED,
            macros=[RUN_QUERY, LISTS, PASSES_ON],
            adapter="duckdb",
        )

    for edit in ALL_OF_IT:
        assert names(of(STG), of(edit)) == (["t"] if edit in moves else []), edit
    assert names(of(STG), of(STG + " -- the same")) == []


RETURNS = macro(
    "macro.p.columns_of",
    "{% macro columns_of(r) %}{{ return(adapter.get_columns_in_relation(r)) }}{% endmacro %}",
)
TYPED = macro("macro.p.typed", "{% macro typed(c) %}{{ c.dtype }}{% endmacro %}")
NAMED = macro("macro.p.named", "{% macro named(c) %}{{ c.name }}{% endmacro %}")
FOUND = macro(
    "macro.p.found",
    "{% macro found() %}{{ return(adapter.get_relation('d', 's', 'stg')) }}{% endmacro %}",
)
PLAIN = macro("macro.p.plain", "{% macro plain() %}1{% endmacro %}")


def looking(raw: str, *called: Macro, stg: str = STG, kind: str = "table") -> Project:
    """stg -> a, which looks at stg while it compiles, and the test t of a."""
    return project(
        orders(),
        node("model.p.stg", stg, RAW, config={"materialized": kind}),
        node(
            "model.p.a",
            "select 1 as x from s.stg",
            "model.p.stg",
            raw=raw,
            macros=[m.unique_id for m in called],
        ),
        check("t", "select x from s.a", "model.p.a"),
        catalog=LISTED,
        macros=called,
        adapter="duckdb",
    )


@pytest.mark.parametrize(
    ("raw", "called", "types"),
    [
        ("{% for c in columns_of(r) %}{{ named(c) }}{% endfor %}", [RETURNS, NAMED], False),
        (
            "{% for c in columns_of(r) %}{{ typed(c) }}{% endfor %}",
            [RETURNS, TYPED],
            True,
        ),
        ("{% for c in columns_of(r) %}{{ c.dtype }}{% endfor %}", [RETURNS], True),
        ("{% for c in columns_of(r) %}{{ c['dtype'] }}{% endfor %}", [RETURNS], True),
        (
            "{{ columns_of(r) | map(attribute='dtype') | join }}",
            [RETURNS],
            True,
        ),
        ("{% for c in columns_of(r) if c.is_string() %}{{ c.name }}{% endfor %}", [RETURNS], True),
        ("{% for c in columns_of(r) %}{{ c.name }}{% endfor %} dtype", [RETURNS], False),
    ],
)
def test_who_lists_columns_may_look_at_their_types(
    raw: str, called: list[Macro], types: bool
) -> None:
    base = looking(raw, *called)
    assert names(base, looking(raw, *called, stg=VALUE)) == (["t"] if types else [])
    assert names(base, looking(raw, *called, stg=COLUMN)) == ["t"]


@pytest.mark.parametrize(
    ("raw", "called", "asks"),
    [
        ("{% if found() %}{{ plain() }}{% endif %}", [FOUND, PLAIN], True),
        ("{% if plain() %}{{ found() }}{% endif %}", [PLAIN, FOUND], True),
        ("{% if plain() %}{{ this }}{% endif %}", [PLAIN], False),
    ],
)
def test_whether_a_relation_is_there_is_asked(raw: str, called: list[Macro], asks: bool) -> None:
    base = looking(raw, *called)
    assert names(base, looking(raw, *called, kind="view")) == (["t"] if asks else [])


# --- macros that ask for a branch, or stand in for dbt's -----------------------------------------


def test_a_branch_in_a_macro_counts_with_the_macro() -> None:
    asks = "{% macro since() %}{% if is_incremental() %} where id > {{ var('days') }} + 3{% endif %}{% endmacro %}"
    raw, of = f"{SQL} {{{{ since() }}}}", ("macro.p.since",)
    base, head = (
        grows(raw, macro("macro.p.since", text), calls=of)
        for text in (asks, asks.replace("3", "4"))
    )
    assert names(base, head) == ["t"]
    assert names(base, base) == []
    assert names(*variable(base, grows(raw, macro("macro.p.since", asks), calls=of))) == ["t"]
    # Compiled SQL shows all of what a table calls, and what an incremental model does not call.
    tables = (side(raw, *s.macros.values(), calls=of) for s in (base, head))
    assert names(*tables) == []
    others = (grows(SQL, *s.macros.values()) for s in (base, head))
    assert names(*others) == []


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("macros/utils/cents.sql", False),
        ("macros/generic_test_sql/cents.sql", False),
        ("macros/adapters/cents.sql", True),
        ("macros/materializations/cents.sql", True),
    ],
)
def test_a_macro_in_place_of_dbts_counts_by_what_dbt_does_with_it(path: str, counts: bool) -> None:
    """Where dbt keeps what only writes SQL, compiled SQL shows it."""
    dbts = macro("macro.dbt.cents", "{% macro cents() %}100{% endmacro %}")
    dbts.original_file_path = path
    one, two = (macro("macro.p.cents", f"{{% macro cents() %}}{n}{{% endmacro %}}") for n in (1, 2))
    assert names(side(SQL, dbts, one), side(SQL, dbts, two)) == (["t", "of_b"] if counts else [])


@pytest.mark.parametrize(
    ("asked", "counts"),
    [
        ("import os\nx = os.environ['DBT_ENV_CUSTOM_ENV_DAYS']", True),
        ("import os as o\nx = o.environ.get('DBT_ENV_CUSTOM_ENV_DAYS')", True),
        ("from os import environ\nx = environ['DBT_ENV_CUSTOM_ENV_DAYS']", True),
        ("from os import environ as e\nx = e['DBT_ENV_CUSTOM_ENV_DAYS']", True),
        ("from os import getenv\nx = getenv('DBT_ENV_CUSTOM_ENV_DAYS', '1')", True),
        ("import os\nx = dict(os.environ)", True),
        ("import os\nname = 'DBT_ENV_CUSTOM_ENV_DAYS'\nx = os.environ[name]", True),
        ("import os\nx = os.environ['DBT_ENV_CUSTOM_ENV_WEEKS']", False),
        ("x = 'os.environ'", False),
        ("# os.environ['DBT_ENV_CUSTOM_ENV_DAYS']\nx = 1", False),
    ],
)
def test_an_environment_variable_of_python(asked: str, counts: bool) -> None:
    code = f"{asked}\ndef model(dbt, session):\n    return dbt.ref('a')\n"

    def of() -> Project:
        m = node("model.p.m", None, RAW, raw=code, language="python")
        return project(orders(), m, check("t", "select id from s.m", "model.p.m"), catalog=LISTED)

    assert names(*environment(of(), of())) == (["t"] if counts else [])


# --- columns that settings name ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "adapter", "counts"),
    [
        ({"incremental_strategy": "merge"}, "duckdb", True),
        ({"incremental_strategy": "delete+insert"}, "duckdb", True),
        ({}, "duckdb", True),
        ({"incremental_strategy": "append"}, "duckdb", False),
        ({"incremental_strategy": "insert_overwrite"}, "spark", False),
        ({}, "spark", False),
        ({"incremental_strategy": "merge"}, "spark", True),
        ({"materialized": "table"}, "duckdb", False),
    ],
)
def test_a_key_decides_which_rows_are_kept_where_the_strategy_looks_at_it(
    config: dict[str, Any], adapter: str, counts: bool
) -> None:
    def of(key: str) -> Project:
        m = node(
            "model.p.m",
            f"select {key} as id, amount from s.orders",
            RAW,
            config={**INCREMENTAL, "unique_key": "id", **config},
        )
        t = check("t", "select amount from s.m where amount is null", "model.p.m")
        return project(orders(), m, t, catalog=LISTED, adapter=adapter)

    assert names(of("id"), of("id + 1")) == (["t"] if counts else [])


@pytest.mark.parametrize(
    ("read", "counts"),
    [
        ("{{ config.get('meta').limit }}", True),
        ("{{ model.meta['limit'] }}", True),
        ("{{ config.get('meta').owner }}", False),
        ("{# {{ config.get('meta').limit }} #}", False),
    ],
)
def test_a_macro_of_a_branch_reads_a_property(read: str, counts: bool) -> None:
    most = macro("macro.p.most", f"{{% macro most() %}}{read}{{% endmacro %}}")
    raw = f"{SQL} {{% if is_incremental() %}} where id > {{{{ most() }}}} {{% endif %}}"
    base, head = (side(raw, most, config={**INCREMENTAL, **m}) for m in (LIMIT, OTHER_LIMIT))
    assert names(base, head) == (["t"] if counts else [])


def test_a_macro_in_place_of_an_adapters_version_reads_what_it_is_handed() -> None:
    dbts = macro(
        "macro.dbt.persist_docs", "{% macro persist_docs(relation, model) %}{% endmacro %}"
    )
    for name in ("persist_docs", "duckdb__persist_docs", "default__persist_docs"):
        own = macro(f"macro.p.{name}", f"{{% macro {name}(r, m) %}}{{{{ m.meta.limit }}}}{{% endmacro %}}")  # fmt: skip
        base, head, other = (side(SQL, dbts, own, config=m) for m in (LIMIT, OTHER_LIMIT, OTHER_OWNER))  # fmt: skip
        assert names(base, head) == ["t"], name
        assert names(base, other) == [], name


# --- hooks of a run that walk over all nodes -----------------------------------------------------

EACH = "{% for n in graph.nodes.values() %}{% do run_query(SQL) %}{% endfor %}"
RESULTS = "{% for r in results %}{% do run_query(SQL) %}{% endfor %}"


@pytest.mark.parametrize(
    ("hook", "selected"),
    [
        (EACH.replace("SQL", "'insert into s.audit values (' ~ n.meta.limit ~ ')'"), []),
        (EACH.replace("SQL", "'insert into s.audit values (' ~ n['meta']['limit'] ~ ')'"), []),
        (EACH.replace("graph.nodes", "graph['nodes']").replace("SQL", "'insert into s.audit select ' ~ n.meta.limit"), []),
        (RESULTS.replace("SQL", "'insert into s.audit select ' ~ r.node.meta.limit"), []),
        ("insert into s.audit values ({{ graph.nodes | length }}, '{{ invocation_id }}')", []),
        ("insert into s.audit values ('{{ run_started_at }}')", []),
        (EACH.replace("SQL", "'insert into s.b values (' ~ n.meta.limit ~ ')'"), ["of_b"]),
        (EACH.replace("graph.nodes", "graph['nodes']").replace("SQL", "'insert into s.b select ' ~ n['meta'].limit"), ["of_b"]),
        wrong("a property that is read of all nodes counts whole", EACH.replace("SQL", "'insert into s.b values (' ~ n.meta.owner ~ ')'"), []),
        (EACH.replace("SQL", "'insert into s.b values (1)'"), []),
        (EACH.replace("SQL", "'select ' ~ n.meta.limit ~ ' from s.b'"), []),
    ],
)  # fmt: skip
def test_what_a_hook_of_the_run_reads_of_all_nodes(hook: str, selected: list[str]) -> None:
    """It decides what the hook writes, not where: only who reads that sees it."""
    base, head = (side(config=m, on_run=hook) for m in (LIMIT, OTHER_LIMIT))
    assert names(base, head) == selected
    codes = {note.code.name for note in picked(base, head).notes}
    assert not [code for code in codes if "HOOK" in code or "MAY_WRITE" in code]


@pytest.mark.parametrize(
    "target", ["n.meta.into", "n['meta']['into']", "n.relation_name", "var('into')"]
)
def test_where_a_hook_of_the_run_writes_may_be_what_it_reads(target: str) -> None:
    hook = EACH.replace("SQL", f"'insert into ' ~ {target} ~ ' values (1)'")
    assert names(side(), side(on_run=hook)) == ["t", "of_b"]
