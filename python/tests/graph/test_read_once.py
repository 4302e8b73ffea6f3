"""What costs most is done where it is asked for, and once; what is asked before a text is parsed tells the same."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hand_made import macro, node, project

from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.reading.reader import Text
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.broken_nodes import BrokenNodeFinder
from dbt_ripple.graph.hooks import Hooks, macros_that_run
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.graph.macros import Macros
from dbt_ripple.jinja import facts as of_facts
from dbt_ripple.jinja import reads as of_reads
from dbt_ripple.jinja import text as of_text
from dbt_ripple.jinja.facts import Facts, asks, calls_any_macro, facts_of
from dbt_ripple.jinja.hook_runs import HookRunner
from dbt_ripple.jinja.text import in_tags

OF_PEOPLE = [
    said["text"]
    for said in yaml.safe_load(
        (Path(__file__).parents[1] / "jinja" / "texts.yml").read_text(encoding="utf-8")
    )
]
HIDDEN = [
    "{{ f('}}') ~ this }}",
    "{{ f('%}', graph.nodes) }}",
    "{% if flags['WHICH'] == '{{ x' %}a{% endif %}",
    "{{ adapter.dispatch('a' ~ b)() }} {{ adapter.dispatch('c')() }}",
    "{{ adapter['dispatch']('a')() }}",
    "{% set f = adapter.dispatch %}{{ f('a')() }}",
    '{{ adapter.dispatch("a", "p")() }}',
    "{{ adapter.dispatch(macro_name='a')() }}",
    "{{ context['x']() }}",
    "{{ p['star'](ref('a')) }}",
    "{{ p . get('star')() }}",
    "{% for n, f in p.items() %}{{ f() }}{% endfor %}",
    "{% set q = p %}{{ q.star() }}",
    "{{ p[n]() }}",
    "{{ p.get(n)() }}",
    "{{ (p | attr('star'))() }}",
    "{{ config.get('a') }}",
    "{{ model.meta }}",
    "{% do f(**kwargs) %}",
    "select 1 -- of this model, by graph and flags\n",
]
"""Texts that say where the ends of their tags are not plain to see, or by other names."""
ASKED: dict[str, Callable[[Facts], bool]] = {
    "whether it exists": Facts.asks_whether_it_exists,
    "the command": Facts.asks_which_command,
    "a full refresh": Facts.asks_for_full_refresh,
    "the warehouse": of_facts.looks_at_it,
    "itself": of_facts.names_this,
    "itself by model": of_facts.names_this_or_model,
    "all nodes": of_facts.asks_the_graph,
}


@pytest.mark.parametrize("what", ASKED)
def test_what_is_asked_by_words_first_is_what_the_tree_says(what: str) -> None:
    question = ASKED[what]
    answers = Counter()
    for text in (*OF_PEOPLE, *HIDDEN):
        if (facts := facts_of(text)).readable:
            assert asks(text, question) == question(facts), text
            answers[question(facts)] += 1
    assert answers[True] and answers[False], "it tells no texts apart"


def test_macros_by_another_name_are_found_by_words_first() -> None:
    called = [text for text in (*OF_PEOPLE, *HIDDEN) if facts_of(text).calls_any_macro]
    for text in (*OF_PEOPLE, *HIDDEN):
        assert calls_any_macro(text) == facts_of(text).calls_any_macro, text
    assert {*HIDDEN[3:4], *HIDDEN[5:6]} <= {*called}


def test_what_may_take_anything_of_a_package_is_parsed() -> None:
    of = Macros(project(macros=[macro("macro.p.star", "{% macro star() %}{% endmacro %}")]))
    taken = [text for text in (*OF_PEOPLE, *HIDDEN) if of._takes_from_package(facts_of(text))]
    assert len(taken) >= 4
    assert all(of._package_alone.search(text) for text in taken)
    assert not of._package_alone.search("{{ p.star(p .star()) }} -- pp, p.valuesof()")


def test_what_reads_no_property_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = "{% macro f(a) %}{{ ref('x') ~ a }}{% endmacro %}"
    told = [of_reads.reads_of(text, ()) for text in (plain, *OF_PEOPLE, *HIDDEN)]
    monkeypatch.setattr(of_reads, "_MAY_READ", of_text._OPENS)
    assert [of_reads.reads_of(text, ()) for text in (plain, *OF_PEOPLE, *HIDDEN)] == told

    def fails(text: str) -> Any:
        raise AssertionError(text)

    monkeypatch.undo()
    monkeypatch.setattr(of_reads, "facts_of", fails)
    assert not of_reads.reads_of(plain, ())
    with pytest.raises(AssertionError):
        of_reads.reads_of("{{ config.get('a') }}", ())


def test_words_of_sql_do_not_have_a_model_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    tree_of = of_facts.tree_of
    monkeypatch.setattr(of_facts, "tree_of", lambda text: parsed.append(text) or tree_of(text))
    of_facts._facts_of.cache_clear()
    sql = "select statement_date as context -- this model\nfrom {{ ref('a') }} where flags"
    assert not any(asks(sql, question) for question in ASKED.values())
    assert parsed == []
    assert asks(sql.replace("ref('a')", "this"), of_facts.names_this)
    assert len(parsed) == 1


def test_all_of_each_tag_is_in_tags() -> None:
    assert "this" in in_tags("a {{ f('}}', this) }} b") and "b" not in in_tags("{{ a }} b")
    assert in_tags("no tag }} at all") == ""
    assert "c" in in_tags("{{ a ~ '{{' ~ c }} d") and "d" not in in_tags("{{ a ~ '{{' ~ c }} d")


# --- hooks ----------------------------------------------------------------------------------------

RUN = {
    "{% do run_query('insert into t values (1)') %}": True,
    "{% call statement('a') %} delete from t {% endcall %}": True,
    "{% do adapter.execute('drop table t') %}": True,
    "{% do adapter.drop_relation(r) %}": True,
    "{% do context['run_query']('create table t (a int)') %}": True,
    "{% if execute %}{% do drop_all_of_it() %}{% endif %}": True,
    "{% if execute %}{% do d.update({'a': 1}) %}{% endif %} create": False,
    "{% if execute %}{{ a }}{% endif %} {# run_query('drop table t') #} -- update": False,
    "{% do run_query('select 1') %}{% do d.update({'a': 1}) %}{# create #}": False,
    "select 'a statement', execute from t -- create": False,
}


@pytest.mark.parametrize("text", RUN)
def test_a_macro_that_runs_what_writes_is_told_by_its_tags(text: str) -> None:
    of = macro("macro.p.f", f"{{% macro f(d, r) %}}{text}{{% endmacro %}}")
    assert bool(macros_that_run(Macros(project(macros=[of])))) == RUN[text]
    model = node("model.p.m", "select 1", raw=text)
    hooks: Hooks = ProjectContext(project(model)).hooks
    assert hooks._may_run(model) == RUN[text]


LOADS = "{% macro load(name) %}{% do run_query('insert into log values (' ~ name ~ ')') %}{% endmacro %}"
WALKS = "{% macro load(name) %}{{ walk(name) }}{% endmacro %}"
WALK = "{% macro walk(kind) %}{% for n in graph.nodes.values() %}{{ n.name }}{% endfor %}{% endmacro %}"


@pytest.mark.parametrize(("macros", "runs"), [((LOADS,), 1), ((WALKS, WALK), 3)])
def test_hooks_of_one_kind_run_once_unless_their_strings_count(
    macros: tuple[str, ...], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a hook walks over all nodes what its strings are counts, and it is not run without them before."""
    ran: list[str] = []
    run = HookRunner.run

    def counted(self: HookRunner, text: str, package: str, *, output: bool = True) -> Any:
        ran.append(text)
        return run(self, text, package, output=output)

    monkeypatch.setattr(HookRunner, "run", counted)
    hooks = [f"{{{{ load('{name}') }}}}" for name in "abc"]
    models = [
        node(f"model.p.m{i}", "select 1", config={"post-hook": [hook]})
        for i, hook in enumerate(hooks)
    ]
    of_macros = [
        macro("macro.p.load", macros[0], *["macro.p.walk"][: len(macros) - 1]),
        *(macro("macro.p.walk", text) for text in macros[1:]),
    ]
    context = ProjectContext(project(*models, macros=of_macros))
    assert context.hooks is not None
    assert len(ran) == runs


# --- SQL ------------------------------------------------------------------------------------------

ONCE = {
    "with __dbt__cte__m as (select a, 'x' as y from s.t) select a from __dbt__cte__m": 1,
    "select last_value(a ignore nulls) over (order by b) as x from t": 1,
    "with __dbt__cte__m as (select percentile(a, 0.5, 3) as p from s.t) select p from __dbt__cte__m": 2,
    "select last_value(a ignore nulls) over (order by b) as x, percentile(a, 0.5, 3) as y from t": 2,
}


@pytest.mark.parametrize("sql", ONCE)
def test_a_query_is_parsed_once_unless_a_word_is_lost(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[Text] = []
    statement = Text.statement
    monkeypatch.setattr(Text, "statement", lambda self: parsed.append(self) or statement(self))
    lowered = lower(sql, "spark")
    assert len(parsed) == ONCE[sql]
    assert (lowered.rel is None) == (ONCE[sql] == 2)
    assert not lowered.reason or str(lowered.reason) == "what `3` means there is not known here"


def test_a_seed_is_only_looked_through_for_what_is_asked_of_it(tmp_path: Path) -> None:
    content = b"a,b\n1,x y\n2,zz"
    (tmp_path / "s.csv").write_bytes(content)
    seed = node(
        "seed.p.s",
        root_path=str(tmp_path),
        original_file_path="s.csv",
        checksum={"name": "sha256", "checksum": hashlib.sha256(content).hexdigest()},
    )
    file = SeedFiles().read(seed)
    assert file is not None and (file.header, file.rows) == (["a", "b"], 2)
    assert "values" not in vars(file) and "shapes" not in vars(file)
    assert len(file.values) == 2 and file.text == {"b"} and len(file.shapes) == 2 and file.bag


def test_what_is_not_known_to_run_is_not_linked_again_to_be_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query that Jinja made of what it found in the warehouse is never broken for sure."""
    searched: list[str] = []
    search = BrokenNodeFinder._search
    monkeypatch.setattr(
        BrokenNodeFinder,
        "_search",
        lambda self, unique_id, of: searched.append(unique_id) or search(self, unique_id, of),
    )
    t = "source.p.raw.t"
    asks_it = "{% set c = adapter.get_columns_in_relation(source('raw', 't')) %}select gone"
    statuses = {}
    for raw in ("select gone from s.t", asks_it):
        model = node("model.p.m", "select gone from s.t", t, raw=raw)
        analysis = analyse(project(node(t), model, catalog={t: ["id"]}, adapter="duckdb"))
        statuses[raw] = analysis.nodes["model.p.m"].status, [*searched]
        searched.clear()
    assert statuses["select gone from s.t"] == ("broken", ["model.p.m"])
    assert statuses[asks_it] == ("opaque", [])


def levels(text: str) -> int:
    """How many levels a tree has."""
    level: list[Any] = [of_text.environment().parse(text)]
    many = 0
    while level:
        level, many = [child for one in level for child in one.iter_child_nodes()], many + 1
    return many


@pytest.mark.parametrize(
    ("before", "of", "inner", "end", "after"),
    [
        ("{{", "(a==", "b", ")", "}}"),
        ("{{", "{a:", "b", "}", "}}"),
        ("{{", "f(k=", "b", ")", "}}"),
        ("{{", "f(*", "b", ")", "}}"),
        ("{{", "[", "b", "]", "}}"),
        ("{{", "a[", "b", "]", "}}"),
        ("{{", "not ", "b", "", "}}"),
        ("{{", "-", "b", "", "}}"),
        ("{{b", "|f", "", "", "}}"),
        ("{{b", ".c", "", "", "}}"),
        ("{{b", " is c", "", "", "}}"),
        ("{{b", " if c else d", "", "", "}}"),
        ("", "{% if a==b %}", "c", "{% endif %}", ""),
        ("", "{% for a in b==c %}", "{{ d==e }}", "{% endfor %}", ""),
        ("", "{% call f(k=b) %}", "{{ c==d }}", "{% endcall %}", ""),
        ("", "{% set x %}", "{{ c }}", "{% endset %}", ""),
    ],
)
@pytest.mark.parametrize("many", [1, 2, 9, 60])
def test_a_tree_has_no_more_levels_than_are_counted(
    before: str, of: str, inner: str, end: str, after: str, many: int
) -> None:
    text = f"{before}{of * many}{inner}{end * many}{after}"
    if " is c" in text and many > 1:
        text = f"{before}{'|f' * many}{of}{after}"
    assert of_text.most_levels(text) >= levels(text)


def test_hardly_any_text_has_to_be_walked_to_know_that_it_is_not_too_deep() -> None:
    few = [text for text in (*OF_PEOPLE, *HIDDEN) if of_text.most_levels(text) <= of_text._DEEPEST]
    assert len(few) > 0.9 * len([*OF_PEOPLE, *HIDDEN])
    assert all(of_text.most_levels(text) >= levels(text) for text in few)
