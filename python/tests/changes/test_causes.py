"""Causes of changes in projects made by hand: what no dbt has to be asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hand_made import check, generic, macro, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import TestMetadata
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.causes import Cause, Causes, causes_of, hunks
from dbt_ripple.changes.comparability import with_session
from dbt_ripple.changes.diff import Diff, NodeDiff
from dbt_ripple.governance.gate import gate
from dbt_ripple.rendering.causes import cause_lines, cause_markdown
from dbt_ripple.rendering.diff import Edits
from dbt_ripple.selection.select import select, select_from

SOURCE = node("source.p.s.raw", columns=["id", "amount"])


def seen_in(project_dir: Path, comparison: Comparison) -> Causes:
    comparison.project_dir = project_dir
    return causes_of(comparison)


def world(stg: str = "select id, amount from s.raw", **config: object) -> Project:
    """A source, a model over it and one over that, with a test."""
    return project(
        SOURCE,
        node("model.p.stg", stg, "source.p.s.raw", **config),
        node("model.p.top", "select id, amount from s.stg", "model.p.stg"),
        node("test.p.of_top", "select * from s.top where amount is null", "model.p.top"),
    )


def causes(base: Project, head: Project) -> list[tuple[str, str, list[str]]]:
    return [(c.kind, c.name, c.nodes) for c in select(base, head).causes]


def test_only_where_a_change_began_has_causes() -> None:
    edited = world("select id, amount * 2 as amount from s.raw")
    assert causes(world(), edited) == [("code", "stg", ["model.p.stg"])]
    assert causes(world(), world()) == []


def test_what_differs_of_the_targets_session_changes_all_that_is_built() -> None:
    base, head = with_session(
        world(), world(), {"settings": "a", "extra": "b"}, {"settings": "c", "extra": "b"}
    )
    assert (base.session, head.session) == ({"settings": "a"}, {"settings": "c"})
    selection = select(base, head)
    assert [t.unique_id for t in selection.tests] == ["test.p.of_top"]
    assert {(c.kind, c.name, c.before, c.after) for c in selection.causes} == {
        ("profile", "settings", "a", "c")
    }
    same = with_session(world(), world(), {"settings": "a"}, {"settings": "a"})
    assert select(*same).tests == []


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("settings.integer_division", "true", "true"),
        ("settings.timezone", "UTC", "UTC"),
        ("settings.s3_secret_access_key", "abc", "***"),
        ("secrets", '[{"secret":"abc"}]', "***"),
        ("attach", '[{"path":"postgres:password=abc"}]', "***"),
        ("is_motherduck", "true", "true"),
        ("settings.timezone", "", None),
    ],
)
def test_what_may_be_a_secret_of_a_profile_is_not_shown(
    key: str, value: str, shown: str | None
) -> None:
    sides = with_session(world(), world(), {key: "before"}, {key: value} if value else {})
    assert {c.after for c in select(*sides).causes} == {shown}


def test_a_seed_is_loaded_by_the_session_too() -> None:
    seed = node("seed.p.countries", columns=["code"])
    over = node(
        "test.p.codes", "select code from s.countries where code is null", "seed.p.countries"
    )
    sides = (project(seed, over) for _ in range(2))
    selection = select(*with_session(*sides, {}, {"settings.timezone": "UTC"}))
    assert (selection.models, [t.name for t in selection.tests]) == (
        ["seed.p.countries"],
        ["codes"],
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ((None, None), []),
        (("{{ target.database }}", "{{ target.database }}"), []),
        (("{{ env_var('DB') }}", "{{ env_var('DB') }}"), []),
        (("{{ var('db') }}", "{{ var('db') }}"), [("property", "database")]),
        (("prod", "ci"), [("property", "database")]),
    ],
)
def test_where_only_the_target_puts_a_source_nobody_edited_it(
    said: tuple[str | None, str | None], told: list[tuple[str, str]]
) -> None:
    """What is told of a source is why it changed: here a column that came, and where it is if that was edited."""
    sides = [
        project(
            replace(SOURCE, database=place, unrendered_database=text),
            check("t", "select * from s.raw", SOURCE.unique_id),
            catalog={SOURCE.unique_id: columns},
        )
        for place, text, columns in zip(("prod", "ci"), said, (["id"], ["id", "came"]), strict=True)
    ]
    found = [(c.kind, c.name) for c in select(*sides).causes]
    assert found == [*told, ("catalog", "came")]


def test_a_contract_that_is_not_enforced_any_more_is_a_promise_taken_back() -> None:
    enforced = world(config={"contract": {"enforced": True}})
    said = [
        f.reason.message for f in gate(enforced, world()).findings if f.rule == "promise_lowered"
    ]
    assert said == ["its contract was enforced, and is not any more"]
    assert "promise_lowered" not in {f.rule for f in gate(world(), enforced).findings}


def test_who_announces_the_end_of_a_model_is_told_so_once() -> None:
    announced = world()
    top = announced.nodes["model.p.top"]
    announced.nodes["model.p.top"] = replace(top, deprecation_date="2099-01-01T00:00:00")
    said = "top is deprecated from 2099-01-01 on"
    assert said in [note.message for note in gate(world(), announced).notes]
    assert said not in [note.message for note in gate(announced, announced).notes]


def test_of_two_tests_that_went_it_is_not_known_which_one_came_again() -> None:
    def having(*values: str) -> Project:
        tests = [
            replace(
                generic(
                    f"t_{v}",
                    "accepted_values",
                    f"select * from s.stg where id <> {v}",
                    "model.p.stg",
                ),
                test_metadata=TestMetadata(name="accepted_values", kwargs={"values": [v]}),
                attached_node="model.p.stg",
                column_name="id",
            )
            for v in values
        ]
        return project(*world().nodes.values(), *tests)

    assert [c[:2] for c in causes(having("1"), having("2"))] == [("argument", "values")]
    assert [c[0] for c in causes(having("1", "3"), having("2"))] == ["new"]


def test_the_gate_counts_what_nobody_edited_and_differs() -> None:
    def calling(text: str, raw: str = "select id, {{ m() }} as amount from s.stg") -> Project:
        top = node(
            "model.p.top",
            f"select id, {text} as amount from s.stg",
            "model.p.stg",
            raw=raw,
            macros=["macro.p.m"],
        )
        parts = [n for n in world().nodes.values() if n.name != "top"]
        return project(
            *parts, top, macros=[macro("macro.p.m", f"{{% macro m() %}}{text}{{% endmacro %}}")]
        )

    report = gate(calling("1"), calling("2"))
    assert (report.decision, [a.name for a in report.affected]) == ("CAUTION", ["top"])
    assert [(c.kind, c.name, c.nodes) for c in report.causes] == [("macro", "m", ["model.p.top"])]
    edited = calling("1", "select id, {{ m() }} as amount from s.stg where true").having()
    top = edited.nodes["model.p.top"]
    edited.nodes["model.p.top"] = replace(
        top, compiled_code="select id, 1 as amount from s.stg where id > 1"
    )
    report = gate(calling("1"), edited)  # who edits it knows that it differs
    assert (report.affected, [c.kind for c in report.causes]) == ([], ["code"])


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (
            {"access": "public"},
            {"access": "protected"},
            ["its access was public, and is protected"],
        ),
        ({"access": "protected"}, {"access": "public"}, []),
        ({}, {"deprecation_date": "2099-01-01"}, []),
        (
            {"deprecation_date": "2099-02-01"},
            {"deprecation_date": "2099-01-01"},
            ["it was to end on 2099-02-01, and ends on 2099-01-01"],
        ),
    ],
)
def test_a_promise_that_is_taken_back_is_a_finding(
    then: dict[str, object], now: dict[str, object], said: list[str]
) -> None:
    def having(fields: dict[str, object]) -> Project:
        made = world()
        made.nodes["model.p.top"] = replace(made.nodes["model.p.top"], **fields)  # type: ignore[arg-type]
        return made

    findings = gate(having(then), having(now)).findings
    assert [f.reason.message for f in findings if f.rule == "promise_lowered"] == said


def test_comments_and_layout_are_no_lines_that_differ() -> None:
    assert list(hunks("a\nb", "a -- b\nb")) == [(1, "a", "a -- b")]  # there is nothing else
    assert list(hunks("a\nb\nc", "-- new\na\n  b\nC")) == [(3, "b\nc", "b\nC")]
    assert list(hunks("a\r\nb", "a\nb")) == []
    assert list(hunks("1,a\n2,b", "1,a\n2,b\n3,c", comments=False)) == [(3, None, "3,c")]


def test_the_text_has_the_first_causes_and_counts_the_rest() -> None:
    def many(number: int) -> Iterator[Cause]:
        for at in range(number):
            yield Cause(
                kind="macro", name=f"m{at}", file="macros/m.sql", line=at + 1, nodes=["model.p.stg"]
            )

    lines = cause_lines([*many(8)], world())
    assert lines[0] == "  macro m0 (macros/m.sql:1) in stg"
    assert lines[-1] == "  and 2 more (--format json has them all)"
    one = Cause(kind="config", name="unique_key", before="a", after="b", nodes=["model.p.stg"])
    assert cause_markdown([one], world()) == ["- config `unique_key` of `stg`: `a` → `b`"]


def test_a_cause_of_several_nodes_is_told_once() -> None:
    base, head = world(), world()
    for name in ("stg", "top"):
        unique_id = f"model.p.{name}"
        head.nodes[unique_id] = replace(
            head.nodes[unique_id], config={"materialized": "incremental"}
        )
    comparison = compare(base, head)
    found = causes_of(comparison).of_all(["model.p.stg", "model.p.top"])
    assert [(c.kind, c.name, len(c.nodes)) for c in found] == [("config", "materialized", 2)]
    assert select_from(comparison).causes[0].name == "materialized"


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        # Every place adds tags, so a yml file may have; what config() says of another key holds.
        ("tags", ["a", "b"], ["config"]),
        ("begin", "2026-01-02", []),
        ("lookback", 2, ["config"]),
    ],
)
def test_a_setting_that_config_gives_by_the_same_words_is_no_cause(
    key: str, value: object, told: list[str]
) -> None:
    raw = "{{ config(tags='a', begin=modules.datetime.date.today()) }} select id, amount from s.raw"
    base, head = (
        world(raw=raw, config={"tags": ["a"], "begin": "2026-01-01", "lookback": 1} | more)
        for more in ({}, {key: value})
    )
    found = causes_of(compare(base, head)).of("model.p.stg")
    assert [c.kind for c in found if c.name == key] == told


def test_changed_is_what_was_edited_and_affected_what_differs_because_of_it() -> None:
    def edits(kind: str, *nodes: str) -> Edits:
        return Edits(Diff(causes=[Cause(kind=kind, name="x", nodes=[*nodes])]), world())

    stg = NodeDiff(unique_id="model.p.stg", change="changed")
    words = {
        kind: edits(kind, "model.p.stg").what_it_is(stg)
        for kind in ("code", "config", "seed", "macro", "var")
    }
    assert words == {
        "code": "changed",
        "config": "changed",
        "seed": "changed",
        "macro": "affected",
        "var": "affected",
    }
    assert edits("code", "model.p.top").what_it_is(stg) == "affected"
    added = NodeDiff(unique_id="model.p.stg", change="added")
    assert edits("macro", "model.p.stg").what_it_is(added) == "added"
    assert edits("macro", "model.p.top").of("model.p.stg") == []
    assert edits("macro", "model.p.stg", "model.p.top").of("model.p.stg") == ["macro x"]


def test_a_function_that_was_built_is_as_it_was_parsed() -> None:
    """dbt notes the macros that built it."""

    def side(body: str = "x + 1", *built_by: str) -> Project:
        function = node("function.p.bumped", body, macros=[*built_by])
        calls = node("model.p.calls", "select s.bumped(1) as a", "function.p.bumped")
        test = node("test.p.of_calls", "select * from s.calls where a is null", "model.p.calls")
        makes = macro("macro.p.spark__scalar_function_sql", "{{ model.compiled_code }}")
        of_dbt = macro("macro.dbt.scalar_function_sql", "...")
        return project(function, calls, test, macros=[makes, of_dbt])

    built = side("x + 1", "macro.p.spark__scalar_function_sql")
    assert select(built, side()).tests == []
    (cause,) = select(built, side("x + 2")).causes
    nodes = ["model.p.calls", "function.p.bumped"]
    assert (cause.kind, cause.name, cause.nodes) == ("code", "bumped", nodes)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ({}, [("partition_by", 5)]),
        ({"partition_by": {"field": "day", "kind": 1}}, [("partition_by.field", 6)]),
        # What is not there any more is told where the setting is, not where another has a key of that name.
        ({"partition_by": {"field": "id", "kind": 1, "schema": 2}}, [("partition_by.schema", 5)]),
    ],
)
def test_what_the_project_file_says_of_a_package_stands_there(
    before: dict[str, object], told: list[tuple[str, int]], tmp_path: Path
) -> None:
    (tmp_path / "dbt_project.yml").write_text(
        "name: p\nmodels:\n  schema: x\n  kind: 1\n  +partition_by:\n    field: id\n    kind: 1\n"
    )
    after = {"partition_by": {"field": "id", "kind": 1}}
    base, head = (
        project(
            SOURCE,
            node("model.q.stg", "select id, amount from s.raw", "source.p.s.raw", config=config),
            node("model.p.own", "select id, amount from s.raw", "source.p.s.raw", config=config),
        )
        for config in (before, after)
    )
    found = seen_in(tmp_path, compare(base, head)).of_all(["model.q.stg", "model.p.own"])
    assert [(c.name, c.line) for c in found] == told
    assert {(c.file, len(c.nodes)) for c in found} == {("dbt_project.yml", 2)}


@pytest.mark.parametrize(
    ("makes", "over"),
    [
        ("create or replace function s.doubled(x int) returns int return x * {n}", "s.doubled(id)"),
        ("create or replace table s.rates as select {n} as rate", "(select rate from s.rates)"),
    ],
)
def test_a_macro_that_makes_what_a_query_names_is_its_cause(makes: str, over: str) -> None:
    def side(n: int) -> Project:
        return project(
            SOURCE,
            node("operation.p.p-on-run-start-0", None, raw="{{ udf() }}", macros=["macro.p.udf"]),
            node("model.p.stg", f"select id, {over} as two from s.raw", SOURCE.unique_id),
            node("model.p.other", "select id from s.raw", SOURCE.unique_id),
            check("t", "select two from s.stg", "model.p.stg"),
            macros=[
                macro("macro.p.udf", f"{{% macro udf() %}}{makes.format(n=n)}{{% endmacro %}}")
            ],
        )

    assert causes(side(2), side(3)) == [("macro", "udf", ["model.p.stg"])]


def test_the_parts_of_a_setting_are_one_line() -> None:
    def part(name: str, *nodes: str) -> Cause:
        return Cause(kind="config", name=name, nodes=[*nodes])

    parts = part("meta.a", "model.p.stg"), part("meta.b", "model.p.stg")
    others = part("meta.c", "model.p.top"), part("alias", "model.p.stg")
    assert cause_lines([*parts, *others], world()) == [
        "  config meta.a of stg, and in 1 more place",
        "  config meta.c of top",
        "  config alias of stg",
    ]


def test_the_vars_of_a_package_are_no_var_of_its_name() -> None:
    def side(value: str, raw: str) -> Project:
        variables = {"q": f"[{{'a': '{value}'}}]", "a": f"['{value}']"}
        return project(
            SOURCE,
            node("model.p.stg", f"select '{value}' from s.raw", "source.p.s.raw", raw=raw),
            macros=[macro("macro.q.m", "{% macro m() %}{% endmacro %}")],
        ).having(variables=variables)

    for raw, told in (("{{ var(x) }}", ["a"]), ("{{ var('q') }}", ["q"])):
        found = causes_of(compare(side("1", raw), side("2", raw))).of("model.p.stg")
        assert [c.name for c in found if c.kind == "var"] == told


def test_a_file_is_read_anew_for_each_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, head = world(), world("select id, amount * 2 as amount from s.raw")
    code = head.nodes["model.p.stg"].raw_code
    head.nodes["model.p.stg"] = replace(
        head.nodes["model.p.stg"], original_file_path="models/stg.sql"
    )
    for folder, before in (("one", ""), ("two", "-- more\n")):
        (tmp_path / folder / "models").mkdir(parents=True)
        (tmp_path / folder / "models" / "stg.sql").write_text(before + code)
        monkeypatch.chdir(tmp_path / folder)
        (cause,) = seen_in(Path(), compare(base, head)).of("model.p.stg")
        assert cause.line == (2 if before else 1)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "../macros/plus.sql"),  # the package is around the project that tests it
        ("shared", "../shared/macros/plus.sql"),
        ("tests/util", "util/macros/plus.sql"),
        ("../elsewhere", "dbt_packages/q/macros/plus.sql"),  # not of the repository
        (None, "dbt_packages/q/macros/plus.sql"),
    ],
)
def test_a_macro_of_a_package_in_the_repository_has_its_own_path(
    source: str | None, told: str, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    project_dir = repository / "tests"
    (repository / ".git").mkdir(parents=True)
    (project_dir / "dbt_packages").mkdir(parents=True)
    if source is not None:
        (repository / source).mkdir(exist_ok=True)
        (project_dir / "dbt_packages" / "q").symlink_to(repository / source)

    def side(body: str) -> Project:
        model = node(
            "model.p.m", f"select 1 {body} as a", macros=["macro.q.plus"], raw="{{ q.plus() }}"
        )
        return project(
            model, macros=[macro("macro.q.plus", f"{{% macro plus() %}}{body}{{% endmacro %}}")]
        )

    (cause,) = seen_in(project_dir, compare(side("+ 1"), side("+ 2"))).of("model.p.m")
    assert (cause.kind, cause.name, cause.file) == ("macro", "q.plus", told)


def test_a_relation_that_dbt_does_not_know_is_new_where_only_head_reads_it() -> None:
    base, head = (
        world(),
        world("select r.id, amount from s.raw as r join nowhere as n on n.id = r.id"),
    )
    kinds = {
        c.name: c.kind
        for u in compare(base, head).changed
        for c in causes_of(compare(base, head)).of(u)
    }
    assert kinds["dataset.nowhere"] == "new"
