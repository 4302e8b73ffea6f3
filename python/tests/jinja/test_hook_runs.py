"""What a hook's Jinja runs when values are not known: every way it may go, and no further."""

from __future__ import annotations

import tracemalloc

import pytest
from hand_made import macro

from dbt_ripple.jinja.facts import facts_of
from dbt_ripple.jinja.hook_runs import HookRun, HookRunner, with_any_literal
from dbt_ripple.jinja.text import without_branches
from dbt_ripple.jinja.unknown import MAX_PATHS

MACROS = [
    macro("macro.p.log_to", "{% macro log_to(it, n=1) %}insert into {{ it }} values ({{ n }}){% endmacro %}"),
    macro("macro.p._hidden", "{% macro _hidden() %}hidden{% endmacro %}"),
    macro("macro.p.twice", "{% macro twice() %}{{ caller() }};{{ caller() }}{% endmacro %}"),
    macro("macro.p.gives", "{% macro gives() %}{{ return({'a': ['x']}) }}{% endmacro %}"),
    macro("macro.q.log_to", "{% macro log_to(it) %}delete from {{ it }}{% endmacro %}"),
    macro("macro.q.of_q", "{% macro of_q(it) %}{{ log_to(it) }}{% endmacro %}"),
    macro("macro.p.duckdb__where", "{% macro duckdb__where() %}of_duckdb{% endmacro %}"),
    macro("macro.p.default__where", "{% macro default__where() %}of_any{% endmacro %}"),
    macro("macro.p.default__other", "{% macro default__other() %}of_any{% endmacro %}"),
    macro("macro.q.default__other", "{% macro default__other() %}of_q{% endmacro %}"),
    macro("macro.dbt.load_relation", "{% macro load_relation(r) %}{{ return(load_cached_relation(r)) }}{% endmacro %}"),
    macro("macro.dbt.load_cached_relation", "{% macro load_cached_relation(r) %}of_dbt{% endmacro %}"),
    macro("macro.p.load_cached_relation", "{% macro load_cached_relation(r) %}of_the_project{% endmacro %}"),
    macro("macro.p.again", "{% macro again() %}{{ again() }}{% endmacro %}"),
    macro(
        "macro.dbt.truncate_relation",
        "{% macro truncate_relation(r) %}{% call statement('t') %}truncate table {{ r }}{% endcall %}{% endmacro %}",
    ),
]  # fmt: skip


def run(text: str, package: str = "p") -> HookRun:
    return HookRunner(MACROS, "p", "duckdb", {"dbt"}).run(text, package)


def given(text: str, package: str = "p") -> list[str]:
    """The statements that a text gives and runs, without layout; it has to be followed."""
    done = run(text, package)
    assert done.because is None
    return sorted({" ".join(s.split()) for s in (*done.statements, *done.output)} - {""})


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("insert into {{ ref('b') }} select 1", ["insert into __relation0__ select 1"]),
        ("{{ log_to(ref('b')) }}", ["insert into __relation0__ values (1)"]),
        ("{{ log_to(it='b', n=var('n')) }}", ["insert into b values (__unknown__)"]),
        ("{{ q.log_to('b') }}", ["delete from b"]),
        # A bare name means the same in each macro: that of the node's package, of the project, of dbt.
        ("{{ q.of_q('b') }}", ["insert into b values (1)"]),
        ("{{ load_relation(this) }}", ["of_the_project"]),
        ("{{ _hidden() }}", ["hidden"]),
        ("{{ gives().a[0] }} {{ gives()['a'] | first }}", ["x x"]),
        ("{% call twice() %}a{% endcall %}", ["a;a"]),
        ("{{ adapter.dispatch('where')() }}", ["of_duckdb"]),
        ("{{ adapter.dispatch('other', 'q')() }}", ["of_any", "of_q"]),
        ("{{ truncate_relation(this) }}", ["truncate table __relation0__"]),
        ("{{ adapter.truncate_relation(this) }}", ["truncate table __relation0__"]),
        ("{% do run_query('delete from ' ~ this) %}", ["delete from __relation0__"]),
        ("{{ 'a' if target.name == 'x' else 'b' }}", ["a", "b"]),
        ("{% if target.type == 'duckdb' %}a{% else %}b{% endif %}", ["a"]),
        ("{% if adapter.type() == 'spark' %}a{% else %}b{% endif %}", ["b"]),
        # The same question has the same answer.
        ("{% if var('x') %}a{% endif %}{% if not target.name == 'x' %}b{% endif %}", ["a", "ab", "b"]),
        ("{% if target.name == 'x' %}a{% endif %}{% if target.name != 'x' %}b{% endif %}", ["a", "b"]),
        ("{% set q = 'x' %}{% if 1 %}{% set q = 'y' %}{% endif %}{{ q }}", ["y"]),
        ("{% if var('x') %}{% set s = 'a' %}{% endif %}{% if s %}{{ s }}{% endif %}", ["a"]),
        ("{% for t in ['a', 'b'] %}{% do run_query('drop table ' ~ t) %}{% endfor %}", ["drop table a", "drop table b"]),
        ("{% for r in results %}{{ r.node.name }}{% if not loop.last %},{% endif %}{% endfor %}",
         ["__unknown__", "__unknown__,__unknown__", "__unknown__,__unknown__,"]),
        ("{% for k, v in var('x').items() %}{{ k }}={{ v }} {% endfor %}",
         ["__unknown__=__unknown__", "__unknown__=__unknown__ __unknown__=__unknown__"]),
        ("{{ exceptions.raise_compiler_error('x') }} delete from b", []),
        ("{{ log('delete from b', info=true) }}", []),
        ("{# delete from b #}{% raw %}{{ x }}{% endraw %}", ["{{ x }}"]),
        ("{{ 'delete from %s' | format('b') }}{{ ';%s' % 'c' }}", ["delete from b;c"]),
        ("{{ 'DELETE'.lower() }} {{ 'x' | upper }}", ["delete X"]),
        ("{% set ns = namespace(q='a') %}{% for r in [1, 2] %}{% set ns.q = ns.q ~ r %}{% endfor %}{{ ns.q }}", ["a12"]),
        ("{{ api.Relation.create(schema='s', identifier='b') }}", ["__relation0__"]),
        ("{{ this.incorporate(path={'identifier': 'b'}) }} {{ this.render() }}", ["__relation1__ __relation0__"]),
        ("{{ builtins.ref.config.name }} {{ adapter.config.quoting }}", ["__unknown__ __unknown__"]),
        ("{{ builtins.ref('b') }} {{ context['log_to']('b') }}", ["__relation0__ insert into b values (1)"]),
    ],
)  # fmt: skip
def test_what_a_text_gives(text: str, statements: list[str]) -> None:
    assert given(text) == statements


@pytest.mark.parametrize(
    "text",
    [
        "{{ nobody_knows() }}",
        "{{ nobody_knows }}",
        "{% if nobody_knows is defined %}a{% endif %}",
        "{{ nobody_knows | default('a') }}",
        "{{ context[var('x')]() }}",
        "{{ context['nobody_knows']() }}",
        "{{ builtins.anything() }}",
        "{{ adapter.drop_schema(this) }}",
        "{{ adapter.dispatch(var('x'))() }}",
        "{{ adapter.dispatch('nobody_knows')() }}",
        "{{ {'a': log_to}[var('x')]('b') }}",
        "{{ submit_python_job(model, 'x') }}",
        "{{ render('{{ x }}') }}",
        "{% set l = ['a', var('x')] %}{% do l.remove('b') %}",
        "{{ again() }}",
        "{{ 1 / 0 }}",
        "{% if x %}",
        "{{ 'x' | nobody_knows }}",
    ],
)
def test_what_cannot_be_followed(text: str) -> None:
    assert run(text).because is not None


@pytest.mark.parametrize(
    "text",
    [
        "{% set q = var('x') ~ '' %}{% if q == 'a' %}hit{% endif %}",
        "{% set q %}{{ var('x') }}{% endset %}{% if q %}hit{% endif %}",
        "{% if 'a' in [var('x')] %}hit{% endif %}",
        "{% if var('x') in {'a': 1} %}hit{% endif %}",
        "{% if var('x') | length > 3 %}hit{% endif %}",
        "{% if (var('x') ~ 'b').startswith('a') %}hit{% endif %}",
        "{% if (var('x') ~ 'b').replace('_', '') == 'b' %}hit{% endif %}",
        "{% if (this.schema ~ '')[0] == 'a' %}hit{% endif %}",
        "{% if var('x') is none %}hit{% endif %}",
        "{% if {var('x'): 1}.get('a') %}hit{% endif %}",
        "{% set l = [] %}{% for r in results %}{% do l.append(r) %}{% endfor %}{% if l | length == 7 %}hit{% endif %}",
        "{% set l = [] %}{% for r in results %}{% do l.append(r) %}{% if l[6] %}hit{% endif %}{% endfor %}",
        "{% set n = namespace(i=0) %}{% for r in results %}{% set n.i = n.i + 1 %}{% endfor %}"
        "{% if n.i == 7 %}hit{% endif %}",
        "{% for r in results %}{% if loop.index == 7 %}hit{% endif %}{% endfor %}",
        "{% for r in var('x') %}{% else %}hit{% endfor %}",
        "{% if run_query('select 1').columns[0][0] == 7 %}hit{% endif %}",
        "{% if load_result('x') and not target.name %}hit{% endif %}",
        # A question of which a part is not known either is another question each time.
        "{% if env_var(var('x')) and not env_var(var('y')) %}hit{% endif %}",
        "{% if flags.x == var('x') ~ '' and flags.x != var('y') ~ '' %}hit{% endif %}",
        "{% if (flags.x | replace('a', '')) and not (flags.x | replace('b', '')) %}hit{% endif %}",
        "{% if flags.x == 1 and flags.x != '1' %}hit{% endif %}",
    ],
)  # fmt: skip
def test_both_ways_are_taken_where_a_value_is_not_known(text: str) -> None:
    """Among them questions that Python answers with no, because it sees the word for the unknown."""
    assert any("hit" in output for output in run(text).output)
    assert any("hit" not in output for output in run(text).output)


def test_a_bare_name_in_a_hook_of_a_package() -> None:
    assert given("{{ log_to('b') }} {{ p.log_to('c') }}", "q") == [
        "delete from b insert into c values (1)"
    ]


def test_an_adapter_that_is_not_known_may_dispatch_to_any_version() -> None:
    runner = HookRunner(MACROS, "p", "glue", {"dbt"})
    assert set(runner.run("{{ adapter.dispatch('where')() }}", "p").output) == {
        "of_duckdb",
        "of_any",
    }


def test_too_many_ways_are_not_taken() -> None:
    """Not even in brief, where they are in the text itself; each alone would be."""
    question = "{%% if var('x') == %d %%}a{%% endif %%}"
    few, many = ("".join(question % i for i in range(n)) for n in (3, MAX_PATHS.bit_length() + 2))
    assert run(few).because is None
    assert run(many).because is not None


def test_deep_macros_are_run_each_for_itself() -> None:
    """What they run counts; what they give is not known, and they multiply no ways."""
    question = "{% if var('x') == I %}a{% endif %}"
    asks = "".join(question.replace("I", str(i)) for i in range(6))
    macros = [
        macro("macro.p.asks", f"{{% macro asks() %}}{asks}{{% do run_query('delete from b') %}}{{% endmacro %}}"),
        macro("macro.p.pure", f"{{% macro pure() %}}{asks}{{% endmacro %}}"),
        macro("macro.p.top", "{% macro top() %}{% do asks() %}{% do asks() %}insert into c {{ pure() }}{% endmacro %}"),
    ]  # fmt: skip
    runner = HookRunner(
        macros, "p", "duckdb", {"dbt"}, may_run=lambda: {"macro.p.asks", "macro.p.top"}
    )
    done = runner.run("{{ top() }}", "p")
    assert done.because is None
    assert [*done.statements] == ["delete from b"]
    assert [*done.output] == ["insert into c __unknown__"]
    assert done.skipped == {"macro.p.pure"}


def test_a_macro_that_ends_in_any_case_ends_what_calls_it_in_brief_too() -> None:
    error = "{{ exceptions.raise_compiler_error('no') }}"
    macros = [
        macro("macro.p.ends", f"{{% macro ends() %}}{{% if var('x') %}}a{{% endif %}}{error}{{% endmacro %}}"),
        macro("macro.p.may_end", f"{{% macro may_end() %}}{{% if var('x') %}}{error}{{% endif %}}{{% endmacro %}}"),
        macro("macro.p.top", "{% macro top() %}{% do may_end() %}{% do run_query('delete from a') %}"
              "{% do ends() %}{% do run_query('delete from b') %}{% endmacro %}"),
    ]  # fmt: skip
    everything = {each.unique_id for each in macros}
    runner = HookRunner(macros, "p", "duckdb", {"dbt"}, may_run=lambda: everything)
    done = runner.run("{{ top() }}", "p", output=False)
    assert done.because is None
    assert [*done.statements] == ["delete from a"]


def test_the_branches_that_are_taken() -> None:
    text = "{% if 1 %}a{% elif var('x') %}b{% else %}c{% endif %}{% if var('x') %}d{% endif %}"
    branches = [number for of, number in run(text).branches if of == text]
    assert without_branches(text, branches) == (
        "{% if 1 %}a{% elif var ( 'x' ) %}{% else %}{% endif %}{% if var ( 'x' ) %}d{% endif %}"
    )


@pytest.mark.parametrize(
    ("text", "small"),
    [
        ("{{ 'a' * 10 ** 12 }}", "{{ 'a' * 10 ** 2 }}"),
        ("{{ 'a' | center(1000000000) }}", "{{ 'a' | center(10) }}"),
        ("{{ 'a'.ljust(1000000000) }}", "{{ 'a'.ljust(10) }}"),
        ("{{ '%1000000000d' % 1 }}", "{{ '%10d' % 1 }}"),
        ("{{ '{:>1000000000}'.format(1) }}", "{{ '{:>10}'.format(1) }}"),
        ("{% for i in range(50000) %}a{% endfor %}", "{% for i in range(10) %}a{% endfor %}"),
        ("{{ range(1000000000) | list }}", "{{ range(10) | list }}"),
        ("{% set ns = namespace(x='a') %}" + "{% set ns.x = ns.x ~ ns.x %}" * 60, "{{ 'a' ~ 'a' }}"),
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}a{% endfor %}{% endfor %}",
            "{% for i in range(9) %}{% for j in range(9) %}a{% endfor %}{% endfor %}",
        ),
        (
            "{% set x = 'a' * 5000 %}{{ x | replace('a', x) | replace('a', x) }}",
            "{{ 'aa' | replace('a', 'b') }}",
        ),
    ],
)  # fmt: skip
def test_a_hook_can_fill_no_memory_and_take_no_hours(text: str, small: str) -> None:
    because = run(text).because
    assert because is not None and "too" in because
    assert run(small).because is None


@pytest.mark.parametrize("text", ["{{ 'a' * 10 ** 8 }}", "{{ 'a' | center(100000000) }}"])
def test_nothing_is_worked_out_where_a_text_is_only_read(text: str) -> None:
    """Jinja has to be asked which ``model`` is meant, and would work out what is constant."""
    tracemalloc.start()
    try:
        facts = facts_of("{% if x %}{% set model = 1 %}{% endif %}{{ model }}" + text)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert "model" in facts.words


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("{{ load('a.csv') }}", "{{ load('b.csv') }}"),
        ("{{ load('a.csv', kind='x') }}", "{{ load('b.csv', kind='y') }}"),
    ],
)
def test_hooks_that_differ_by_a_string_are_one(text: str, shared: str) -> None:
    assert with_any_literal(text) == with_any_literal(shared) != text


@pytest.mark.parametrize(
    "text", ["{{ load(x['a']) }}", "{{ load(a) }}", "{{ 'a' ~ b }}", "delete from 'a'", "{{ f(['a']) }}"]
)  # fmt: skip
def test_a_string_that_no_call_is_given_stays(text: str) -> None:
    assert with_any_literal(text) == text
