"""What dbt renders into a config while it parses: a run's id or time is no edit, and all else is."""

from __future__ import annotations

import pytest
from hand_made import macro, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project
from dbt_ripple.governance.gate import gate
from dbt_ripple.selection.select import select

ID = "83f8e1fb-c9f2-41ec-bf49-2621c68c61c7"
OTHER = "3f8b0e3e-b73c-4177-973e-473abc38304f"
PURGE = "{% macro purge(run) %}delete from s.stg where day < '2020-01-01' and id <> '{{ run }}'{% endmacro %}"
OWN = "{{ config(post_hook=purge(invocation_id)) }} select id from s.raw"
WRITTEN = "{{ config(post_hook=\"delete from s.stg where day < '2020-01-01' and id <> '\" ~ invocation_id ~ \"'\") }} select id from s.raw"
CALLED = "{{ config(post_hook=purge()) }} select id from s.raw"
ASKING = PURGE.replace("(run)", "()").replace("run }}", "invocation_id }}")
OF_THIS = ASKING.replace("s.stg", "{{ this }}")
HOOK = "delete from s.stg where day < '2020-01-01' and id <> '{}'"


def world(
    *hooks: str, raw: str = OWN, purge: str = PURGE, package: str = "p", root: str = "p"
) -> Project:
    model = f"model.{package}.stg"
    listed = [{"sql": hook, "transaction": True} for hook in hooks]
    made = project(
        node("source.p.s.raw", columns=["id"]),
        node(
            model, "select id from s.raw", "source.p.s.raw", raw=raw, config={"post-hook": listed}
        ),
        node("test.p.of_stg", "select * from s.stg where id is null", model),
        macros=[macro(f"macro.{root}.purge", purge)],
    )
    return made.having(metadata=made.metadata.__class__(adapter_type="spark", project_name=root))


def selected(base: Project, head: Project) -> list[str]:
    return [test.name for test in select(base, head).tests]


@pytest.mark.parametrize(
    ("raw", "purge"), [(OWN, PURGE), (WRITTEN, PURGE), (CALLED, ASKING), (CALLED, OF_THIS)]
)
def test_an_id_of_a_run_is_no_edit(raw: str, purge: str) -> None:
    base, head = (world(HOOK.format(run), raw=raw, purge=purge) for run in (ID, OTHER))
    assert selected(base, head) == []
    assert select(base, head).models == []
    assert select(base, head).causes == []


def test_nor_is_the_schema_of_another_target() -> None:
    def side(run: str, schema: str) -> Project:
        hook = HOOK.format(run).replace("s.stg", f"`{schema}`.`stg`")
        made = world(hook, raw=CALLED, purge=OF_THIS)
        stg = made.nodes["model.p.stg"]
        made.nodes["model.p.stg"] = replace(stg, relation_name=f"`{schema}`.`stg`")
        return made

    assert selected(side(ID, "s"), side(OTHER, "s")) == []
    test = side(OTHER, "ci").nodes["test.p.of_stg"]
    there = side(OTHER, "ci")
    there.nodes["test.p.of_stg"] = replace(
        test, compiled_code="select * from ci.stg where id is null"
    )
    assert selected(side(ID, "s"), there) == []


def test_nor_is_it_one_to_the_gate() -> None:
    hook = "insert into log select '{}' from s.stg"
    writes = PURGE.replace("delete from s.stg where", hook.format("{{ invocation_id }}"))
    base, head = (world(hook.format(run), raw=CALLED, purge=writes) for run in (ID, OTHER))
    assert [finding.rule for finding in gate(base, head).findings] == []
    head = world(hook.format(OTHER).replace("log", "elsewhere"), raw=CALLED, purge=writes)
    assert "unjudged_code" in [finding.rule for finding in gate(base, head).findings]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The macro that renders it has another date.
        (
            world(HOOK.format(ID)),
            world(HOOK.format(OTHER).replace("2020", "2021"), purge=PURGE.replace("2020", "2021")),
        ),
        # So has the one that asks for the id itself.
        (
            world(HOOK.format(ID), raw=CALLED, purge=ASKING),
            world(
                HOOK.format(OTHER).replace("2020", "2021"),
                raw=CALLED,
                purge=ASKING.replace("2020", "2021"),
            ),
        ),
        # So has what config() writes.
        (
            world(HOOK.format(ID), raw=WRITTEN),
            world(HOOK.format(OTHER).replace("2020", "2021"), raw=WRITTEN.replace("2020", "2021")),
        ),
        # Another hook, of a yml file, has another date.
        (
            world("delete from s.stg where day < '2020-01-01'", HOOK.format(ID)),
            world("delete from s.stg where day < '2021-01-01'", HOOK.format(OTHER)),
        ),
        # A var is part of it, which may be a date.
        (
            world(HOOK.format(ID), raw=OWN.replace("purge(", "var('by') ~ purge(")),
            world(
                HOOK.format(OTHER).replace("2020", "2021"),
                raw=OWN.replace("purge(", "var('by') ~ purge("),
            ),
        ),
        # What renders it asks for a var.
        *(
            (
                world(HOOK.format(ID), purge=asks),
                world(HOOK.format(OTHER).replace("2020", "2021"), purge=asks),
            )
            for asks in [PURGE.replace("'2020-01-01'", "'{{ var(\"by\") }}'")]
        ),
        # Nothing of it is of a run.
        (
            world(HOOK.format(ID), raw="select id from s.raw"),
            world(HOOK.format(OTHER), raw="select id from s.raw"),
        ),
        # The project may add hooks to a package's node behind its own.
        (
            world(HOOK.format(ID), package="q", purge=PURGE),
            world(HOOK.format(OTHER), package="q", purge=PURGE),
        ),
    ],
)
def test_all_else_counts(before: Project, after: Project) -> None:
    assert selected(before, after) == ["of_stg"]


def test_this_in_a_header_is_no_edit() -> None:
    def header(place: str, raw: str) -> Project:
        return project(
            node("source.p.s.raw", columns=["id"]),
            node(
                "model.p.stg",
                "select id from s.raw",
                "source.p.s.raw",
                raw=raw,
                config={"sql_header": f"set x = '{place}';"},
                unrendered={"sql_header": f"set x = '{place}';"},
            ),
            node("test.p.of_stg", "select * from s.stg where id is null", "model.p.stg"),
        )

    this = '{{ config(sql_header="set x = \'" ~ this ~ "\';") }} select id from s.raw'
    assert selected(header("prod.stg", this), header("dev.stg", this)) == []
    literal = "{{ config(sql_header=\"set x = 'prod.stg';\") }} select id from s.raw"
    assert selected(header("prod.stg", literal), header("dev.stg", literal)) == ["of_stg"]
