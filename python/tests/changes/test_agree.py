"""What has other compiled SQL, or none, on one side and has not changed, and what has all the same."""

from __future__ import annotations

import copy
import hashlib
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Metadata, Node, Project
from dbt_ripple.artifacts.project import CatalogColumn, DependsOn, Run
from dbt_ripple.changes import compare
from dbt_ripple.changes.dbt_vars import Variables

PROJECT_FILE = "name: shop\nversion: '1'\nvars: {limit: 3, shop: {deep: [1, 2]}}\n"


def model(name: str, raw: str, compiled: str | None, *parents: str, **more: Any) -> Node:
    fields: dict[str, Any] = {
        "unique_id": f"model.shop.{name}",
        "name": name,
        "alias": name,
        "resource_type": "model",
        "package_name": "shop",
        "schema": "s",
        "raw_code": raw,
        "compiled_code": compiled,
        "relation_name": f"s.{name}",
        "config": {"materialized": "table"},
        "depends_on": DependsOn(nodes=[f"model.shop.{parent}" for parent in parents]),
    }
    return Node(**(fields | more))


def macro(name: str, text: str, package: str = "shop", *calls: str) -> Macro:
    return Macro(
        unique_id=f"macro.{package}.{name}",
        name=name,
        package_name=package,
        macro_sql=f"{{% macro {name}() %}}{text}{{% endmacro %}}",
        depends_on=DependsOn(macros=list(calls)),
    )


RUN_QUERY = macro(
    "run_query", "{{ statement() }}{{ load_result('x') }}", "dbt", "macro.dbt.statement"
)
STATEMENT = macro("statement", "{{ write(model) }}{{ adapter.execute(sql) }}", "dbt")


def side(folder: Path, which: str, *nodes: Node, macros: tuple[Macro, ...] = ()) -> Project:
    """A project in a folder of its own, whose artifacts one command has written."""
    (folder / "target").mkdir(parents=True, exist_ok=True)
    file = folder / "dbt_project.yml"
    if not file.exists():
        file.write_text(PROJECT_FILE)
    return Project(
        target_path=str(folder / "target"),
        metadata=Metadata(
            project_name="shop",
            dbt_version="1.11.1",
            adapter_type="duckdb",
            invocation_id=which,
            generated_at=datetime.now(UTC),
        ),
        nodes={n.unique_id: n for n in nodes},
        parents={n.unique_id: list(n.depends_on.nodes) for n in nodes},
        children={},
        macros={m.unique_id: m for m in (RUN_QUERY, STATEMENT, *macros)},
        run_args={"vars": {}, "project_dir": str(folder), "which": which},
        run_invocation=which,
    )


ORDERS = model("orders", "select 1 as id, 2 as v", "select 1 as id, 2 as v")
BELOW = model("below", "select * from {{ ref('top') }}", "select * from s.top", "top")


TOP = "model.shop.top"


class World:
    """Base and head of one small project, equal but for the compiled SQL of ``top``."""

    def __init__(self, folder: Path, raw: str, before: str | None, now: str | None) -> None:
        self.folder = folder
        macros = (
            macro("ours", "{{ return(adapter.dispatch('ours')()) }}"),
            macro("default__ours", "1"),
            macro("spark__ours", "2"),
        )
        nodes = [ORDERS, model("top", raw, before, "orders"), BELOW]
        self.base = side(folder / "base", "build", *copy.deepcopy(nodes), macros=macros)
        nodes[1] = model("top", raw, now, "orders")
        self.head = side(folder / "head", "compile", *copy.deepcopy(nodes), macros=macros)

    def changed(self) -> list[str]:
        self.base_read, self.head_read = copy.deepcopy((self.base, self.head))
        comparison = compare(self.base, self.head)
        assert (self.base, self.head) == (self.base_read, self.head_read)
        self.base, self.head = comparison.base, comparison.head
        return sorted(unique_id.rpartition(".")[2] for unique_id in comparison.changed)

    @property
    def top(self) -> Node:
        """Head's."""
        return self.head.nodes[TOP]


FROM = " id from {{ ref('orders') }}"
ONE, OTHER = "select 1 as id from s.orders", "select 2 as id from s.orders where v > 1"


@pytest.mark.parametrize(
    "raw",
    [
        "select {% if flags.WHICH in ('run', 'build') %} 1 {% else %} 2 {% endif %} as" + FROM,
        "select '{{ run_started_at }}' as" + FROM,
        "select '{{ invocation_id }} {{ thread_id }} {{ modules.datetime.datetime.now() }}' as"
        + FROM,
        "select '{{ ref('orders').render() }}' as" + FROM,
        "{% for n in graph.nodes.values() if n.name == 'orders' %} select '{{ n.alias }}' as"
        + FROM
        + "{% endfor %}",
        "select {{ var('limit') }} as" + FROM,
        "select {% if target.type == 'duckdb' %} 1 {% endif %} as" + FROM,
        "select '{{ target.name }}' as" + FROM,
        "select {{ run_query('select max(v) from ' ~ ref('orders')) }} as" + FROM,
        "select {{ ours() }} as" + FROM,
        "{% if adapter.get_columns_in_relation(ref('orders')) %}" + FROM + "{% endif %}",
    ],
)
@pytest.mark.parametrize(("before", "now"), [(ONE, OTHER), (None, ONE), (ONE, None)])
def test_one_code_compiled_to_two_texts_has_not_changed(
    tmp_path: Path, raw: str, before: str | None, now: str | None
) -> None:
    world = World(tmp_path, raw, before, now)
    assert world.changed() == []
    assert world.top.compiled_code == (before or now)


def of_macro(name: str) -> Callable[[World], None]:
    return lambda world: world.head.macros.update({f"macro.shop.{name}": macro(name, "3")})


def of_vars(text: str) -> Callable[[World], None]:
    return lambda world: (world.folder / "head" / "dbt_project.yml").write_text(text) and None


def of_node(**fields: Any) -> Callable[[World], None]:
    return lambda world: world.head.nodes.update({TOP: replace(world.top, **fields)})


def of_arguments(**run_args: Any) -> Callable[[World], None]:
    return lambda world: world.head.run_args.update(run_args)


def without_below(world: World) -> None:
    del world.head.nodes["model.shop.below"]


def elsewhere(world: World) -> None:
    for node in world.head.nodes.values():
        world.head.nodes[node.unique_id] = replace(node, schema="ci")


@pytest.mark.parametrize(
    ("raw", "edit"),
    [
        ("select {{ ours() }} as" + FROM, of_macro("default__ours")),
        ("select {{ ours() }} as" + FROM, of_macro("duckdb__ours")),
        ("select {{ spark__ours() }} as" + FROM, of_macro("spark__ours")),
        ("select {{ var('limit') }} as" + FROM, of_vars(PROJECT_FILE.replace("3", "4"))),
        ("select {{ var('deep') }} as" + FROM, of_vars(PROJECT_FILE.replace("2]", "5]"))),
        ("select {{ var('limit') }} as" + FROM, of_vars("name: [")),
        ("select {{ var('limit') }} as" + FROM, of_arguments(vars={"limit": 4})),
        ("select {{ var('limit') }} as" + FROM, of_arguments(project_dir="/nowhere")),
        ("select '{{ target.name ~ var('limit') }}' as" + FROM, of_arguments(vars={"limit": 4})),
        ("select '{{ target.name }}' as{{ ours() }}" + FROM, of_macro("default__ours")),
        ("select {{ render('a') }} as" + FROM, of_node()),
        ("select {{ env_var('X') }} as" + FROM, of_node()),
        ("select {{ flags.VARS['limit'] }} as" + FROM, of_node()),
        ("select {{ flags['VARS'] }} as" + FROM, of_node()),
        ("select {{ invocation_args_dict.vars }} as" + FROM, of_node()),
        (
            "select {{ graph.nodes.values() | map(attribute='description') }} as" + FROM,
            of_node(description="new"),
        ),
        ("select {{ graph.nodes.values() | length }} as" + FROM, without_below),
        ("select {{ graph.nodes | tojson }} as" + FROM, of_node(description="new")),
        ("select {{ context['var']('limit') }} as" + FROM, of_node()),
        ("select '{{ model.description }}' as" + FROM, of_node(description="new")),
        (
            "select '{{ config.get('meta') }}' as" + FROM,
            of_node(config={"materialized": "table", "meta": {"a": 1}}),
        ),
        ("select 1 as" + FROM, of_node(config={"materialized": "incremental"})),
        ("select {{ run_query('select 1') }} as id", of_node(depends_on=DependsOn())),
    ],
)
@pytest.mark.parametrize("before", [ONE, None])
def test_what_may_be_the_reason_for_another_text_counts(
    tmp_path: Path, raw: str, edit: Callable[[World], None], before: str | None
) -> None:
    world = World(tmp_path, raw, before, OTHER)
    edit(world)
    if not world.top.depends_on.nodes:
        world.base.nodes["model.shop.top"] = replace(
            world.base.nodes["model.shop.top"], depends_on=DependsOn()
        )
    assert "top" in world.changed()


@pytest.mark.parametrize(
    ("raw", "edit"),
    [
        ("select {{ ours() }} as" + FROM, of_macro("spark__ours")),
        ("select {{ ours() }} as" + FROM, of_vars(PROJECT_FILE.replace("3", "4"))),
        ("select {{ var('limit') }} as" + FROM, of_vars(PROJECT_FILE.replace("'1'", "'2'"))),
        (
            "{{ config(meta={}) }} select 1 as" + FROM,
            of_node(config={"materialized": "table", "meta": {"a": 1}, "persist_docs": {"x": 1}}),
        ),
        ("select 1 as" + FROM, of_node(description="new")),
        ("select '{{ run_started_at }}' as" + FROM, of_arguments(target="prod")),
        ("select '{{ target.name }}' as" + FROM, of_arguments(target="prod")),
        ("select '{{ target.schema }}' as" + FROM, elsewhere),
        ("select '{{ schema }}' || '{{ this.schema }}' as" + FROM, elsewhere),
        ("select {% if target.name == 'a' %} 1 {% endif %} as" + FROM, of_arguments(target="prod")),
        (
            "select {{ graph.nodes.values() | map(attribute='alias') }} as" + FROM,
            of_node(meta={1: 2}),
        ),
    ],
)
@pytest.mark.parametrize("before", [ONE, None])
def test_what_no_text_can_show_does_not(
    tmp_path: Path, raw: str, edit: Callable[[World], None], before: str | None
) -> None:
    world = World(tmp_path, raw, before, OTHER)
    edit(world)
    assert world.changed() == []


def test_what_another_target_reads_counts(tmp_path: Path) -> None:
    """Tests run in head's target: the column that the query reads there is the one that counts."""
    raw = "select {% if target.name == 'prod' %}id{% else %}v{% endif %} as id from {{ ref('orders') }}"
    of_prod, of_ci = "select id from s.orders", "select v as id from s.orders"
    world = World(tmp_path, raw, of_prod, of_ci)
    of_arguments(target="ci")(world)
    assert world.changed() == []
    assert world.base.nodes[TOP].compiled_code == of_ci
    orders = world.head.nodes["model.shop.orders"]
    edited = replace(
        orders, raw_code="select 1 as id, 3 as v", compiled_code="select 1 as id, 3 as v"
    )
    world.head.nodes["model.shop.orders"] = edited
    assert world.changed() == ["below", "orders", "top"]


@pytest.mark.parametrize("before", [ONE, None])
def test_what_it_looks_at_counts(tmp_path: Path, before: str | None) -> None:
    raw = "select {{ run_query('select max(v) from ' ~ ref('orders')) }} as" + FROM
    world = World(tmp_path, raw, before, OTHER)
    world.head.nodes["model.shop.orders"] = replace(
        world.head.nodes["model.shop.orders"],
        compiled_code="select 1 as id, 3 as v",
        raw_code="select 1 as id, 3 as v",
    )
    assert world.changed() == ["below", "orders", "top"]


def test_a_node_that_is_inlined_is_part_of_the_text(tmp_path: Path) -> None:
    world = World(tmp_path, "select 1 as" + FROM, None, ONE)
    for project in (world.base, world.head):
        project.nodes["model.shop.orders"] = replace(
            project.nodes["model.shop.orders"], config={"materialized": "ephemeral"}
        )
    assert world.changed() == []
    world = World(tmp_path, "select 1 as" + FROM, None, ONE)
    for project in (world.base, world.head):
        project.nodes["model.shop.orders"] = replace(
            project.nodes["model.shop.orders"], config={"materialized": "ephemeral"}
        )
    world.head.nodes["model.shop.orders"] = replace(
        world.head.nodes["model.shop.orders"], raw_code="select 2 as id, 2 as v"
    )
    assert "top" in world.changed()


def test_names_are_those_of_the_side(tmp_path: Path) -> None:
    world = World(
        tmp_path, "select '{{ run_started_at }}' as" + FROM, None, "select 1 as id from c.orders"
    )
    for node in world.head.nodes.values():
        world.head.nodes[node.unique_id] = replace(
            node,
            schema="c",
            relation_name=f"c.{node.name}",
            compiled_code=(node.compiled_code or "").replace(" s.", " c."),
        )
    world.head = world.head.having(catalog={"model.shop.top": [CatalogColumn(name="id")]})
    assert world.changed() == []
    assert world.base.nodes["model.shop.top"].compiled_code == "select 1 as id from s.orders"


# -- vars -------------------------------------------------------------------------------------------


def parsed_with(project: Project, text: str, invocation: str | None = None) -> None:
    """Leave what dbt leaves of its parsing."""
    digest = {"name": "sha256", "checksum": hashlib.sha256(text.encode()).hexdigest()}
    partial_parse = {
        "metadata": {
            "project_name": "shop",
            "invocation_id": invocation or project.metadata.invocation_id,
        },
        "state_check": {"project_hashes": {"shop": digest}, "vars_hash": {"checksum": "0"}},
        "nodes": {"model.shop.a": {"created_at": 1.5, "name": "a"}},
    }
    content = msgspec.msgpack.encode(partial_parse)
    (Path(project.target_path) / "partial_parse.msgpack").write_bytes(content)


def test_one_folder_has_the_file_of_one_side(tmp_path: Path) -> None:
    """Base may have been built in a folder of the same name on another machine."""
    base, head = two_sides(tmp_path)
    base = base.having(run_args=head.run_args)
    assert not Variables(base, head).same("shop")
    parsed_with(base, PROJECT_FILE)
    assert Variables(base, head).same("shop")


def test_a_command_that_need_not_parse_leaves_the_file_of_an_earlier_one(tmp_path: Path) -> None:
    base, head = two_sides(tmp_path)
    base, head = (side.having(run_args={}) for side in (base, head))
    for project in (base, head):
        parsed_with(project, PROJECT_FILE, "dbt seed, before")
    assert not Variables(base, head).same("shop")  # nothing says that it is of this manifest

    def written(project: Project, created_at: float, invocation: str | None = None) -> None:
        invocation = invocation or project.metadata.invocation_id
        metadata = {"invocation_id": invocation}
        manifest = {"metadata": metadata, "nodes": {"model.shop.a": {"created_at": created_at}}}
        (Path(project.target_path) / "manifest.json").write_bytes(msgspec.json.encode(manifest))

    for project in (base, head):
        written(project, 1.5)
    assert Variables(base, head).same("shop")
    written(base, 1.5, "a command that has run since base was read")
    assert not Variables(base, head).same("shop")
    written(base, 2.5)  # parsed again: by another project file, for one
    assert not Variables(base, head).same("shop")


def two_sides(folder: Path) -> tuple[Project, Project]:
    return side(folder / "base", "build", ORDERS), side(folder / "head", "compile", ORDERS)


def test_vars_are_the_same_where_the_files_are_at_hand_and_say_the_same(tmp_path: Path) -> None:
    base, head = two_sides(tmp_path)
    assert Variables(base, head).same("shop")
    assert not Variables(base, head).same("a_package")  # whose file is not at hand
    head = head.having(run_args={})
    assert not Variables(base, head).same("shop")


def test_a_file_that_is_newer_than_the_artifacts_tells_nothing(tmp_path: Path) -> None:
    base, head = two_sides(tmp_path)
    later = datetime.now(UTC).timestamp() + 60
    os.utime(tmp_path / "base" / "dbt_project.yml", (later, later))
    assert not Variables(base, head).same("shop")
    parsed_with(base, PROJECT_FILE)
    assert Variables(base, head).same("shop")
    parsed_with(base, PROJECT_FILE + "x: 1")
    assert not Variables(base, head).same("shop")
    parsed_with(base, PROJECT_FILE, "another invocation")
    assert not Variables(base, head).same("shop")


def test_the_file_that_dbt_has_read_is_found_in_git(tmp_path: Path) -> None:
    """Base was built in the folder that now has head."""
    before = PROJECT_FILE.replace("version: '1'", "version: '0'")
    base, head = two_sides(tmp_path)
    base = base.having(run_args=head.run_args)
    folder = tmp_path / "head"
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    for text in (before, PROJECT_FILE):
        (folder / "dbt_project.yml").write_text(text)
        subprocess.run([*git, "add", "dbt_project.yml"], check=True)
        subprocess.run([*git, "commit", "-qm", "x"], check=True)
    parsed_with(head, PROJECT_FILE)
    parsed_with(base, before)
    assert Variables(base, head).same("shop")
    parsed_with(base, before.replace("3", "4"))
    assert not Variables(base, head).same("shop")


KEEPS = (
    "select id, v from s.orders {% if is_incremental() %} where v > {{ var('limit') }} {% endif %}"
)


def test_a_var_that_no_compiled_sql_shows_counts_where_the_files_tell_its_values(
    tmp_path: Path,
) -> None:
    incremental = model(
        "top", KEEPS, "select id, v from s.orders", "orders", config={"materialized": "incremental"}
    )
    base, head = (
        side(tmp_path / name, which, ORDERS, incremental)
        for name, which in (("base", "build"), ("head", "compile"))
    )

    def answer() -> tuple[list[str], list[str]]:
        comparison = compare(base, head)
        return [*comparison.changed], [str(note.code) for note in comparison.notes]

    assert answer() == ([], [])
    (tmp_path / "head" / "dbt_project.yml").write_text(PROJECT_FILE.replace("3", "4"))
    assert answer() == ([TOP], [])
    assert Variables(base, head).differing() == (
        {"limit": "[3]", "shop": "[{'deep': [1, 2]}]", "deep": "[('', 'shop', [1, 2])]"},
        {"limit": "[4]", "shop": "[{'deep': [1, 2]}]", "deep": "[('', 'shop', [1, 2])]"},
    )
    head = head.having(run_args={})  # only parsed: its file is known by its digest
    assert answer() == ([], ["vars_unseen"])
    parsed_with(base, PROJECT_FILE)
    parsed_with(head, PROJECT_FILE.replace("3", "4"))
    assert answer() == ([TOP], [])
    parsed_with(head, PROJECT_FILE.replace("3", "5"))
    assert answer() == ([], ["vars_unseen"])  # nothing has the text that dbt has read


def test_a_var_of_the_command_line_counts_where_the_results_tell_it(tmp_path: Path) -> None:
    base, head = two_sides(tmp_path)
    head = head.having(run_args={**head.run_args, "vars": {"limit": 9}})
    told = Variables(base, head).differing()
    assert told is not None
    assert (told[0]["limit"], told[1]["limit"]) == ("[3]", "[9]")
    head = head.having(run_args={**head.run_args, "vars": "limit: 9"})
    assert Variables(base, head).differing() is None


def test_what_the_command_line_sets_is_so_whatever_the_files_say(tmp_path: Path) -> None:
    base, head = two_sides(tmp_path)
    (tmp_path / "head" / "dbt_project.yml").write_text(PROJECT_FILE.replace("3", "4"))

    def limits(before: Any, now: Any) -> tuple[str, str] | None:
        sides = (
            side.having(run_args={**side.run_args, "vars": given})
            for side, given in ((base, before), (head, now))
        )
        told = Variables(*sides).differing()
        return told and (told[0]["limit"], told[1]["limit"])

    assert limits({}, {}) == ("[3]", "[4]")
    assert limits({"limit": 9}, {"limit": 9}) == ("[9]", "[9]")
    assert limits({"limit": 9}, {"limit": 8}) == ("[9]", "[8]")
    assert limits({"limit": 9}, {}) == ("[9]", "[4]")
    assert limits({"other": 9}, {"other": 9}) == ("[3]", "[4]")
    assert limits({"limit": "{{ 9 }}"}, {"limit": "{{ 9 }}"}) == ("[3]", "[4]")


# -- times and ids of the run -------------------------------------------------------------------------

STARTED = (
    datetime(2026, 11, 20, 1, 2, 3, 456789, UTC),
    datetime(2026, 11, 26, 4, 5, 6, tzinfo=UTC),
)


@pytest.mark.parametrize(
    ("then", "now", "changed"),
    [
        ("2026-11-20 01:02:03.456789+00:00", "2026-11-26 04:05:06+00:00", False),
        ("2026-11-20T01:02:03.456789", "2026-11-26T04:05:06", False),
        ("2026-11-19 17:02:03.456789-08:00", "2026-11-25 20:05:06-08:00", False),
        ("of build", "of compile", False),
        ("2026-11-20 01:02:03 of build", "2026-11-26 04:05:06 of compile", False),
        ("2026-11-20 01:02:09+00:00", "2026-11-26 04:05:06+00:00", True),
        ("2026-11-20 01:02:03-08:00", "2026-11-26 04:05:06+00:00", True),
        ("2026-11-20", "2026-11-26", True),
        ("2026-11-26 04:05:06", "2026-11-20 01:02:03.456789", True),
        ("2026-11-20 01:02:03.456789+00:00", "", True),
    ],
)
def test_of_vars_that_are_not_known_only_the_time_of_the_run_is_no_change(
    tmp_path: Path, then: str, now: str, changed: bool
) -> None:
    raw = "select '{{ var('last_run') }}' as" + FROM
    before, after = (f"select '{value}' as id from s.orders" for value in (then, now))
    world = World(tmp_path, raw, before, after)
    world.base, world.head = (
        side.having(run_args={}, runs=[Run(f"of {which}", started)])
        for side, which, started in zip(
            (world.base, world.head), ("build", "compile"), STARTED, strict=True
        )
    )
    assert not Variables(world.base, world.head).same("shop")
    assert bool(world.changed()) == changed


def test_a_head_that_is_only_parsed_had_no_vars_if_dbts_digest_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, head = two_sides(tmp_path)
    head = head.having(run_args={})
    monkeypatch.setenv("DBT_PROFILES_DIR", str(tmp_path))
    (tmp_path / "profiles.yml").write_text("shop: {target: dev, outputs: {ci: {type: duckdb}}}")

    def parsed(vars_and_target: str) -> bool:
        text = f"{vars_and_target}\x001.11.1"
        digest = {"name": "sha256", "checksum": hashlib.sha256(text.encode()).hexdigest()}
        for project in (base, head):
            parsed_with(project, PROJECT_FILE)
        file = Path(head.target_path) / "partial_parse.msgpack"
        content = msgspec.msgpack.decode(file.read_bytes())
        content["state_check"]["vars_hash"] = digest
        file.write_bytes(msgspec.msgpack.encode(content))
        return Variables(base, head).same("shop")

    assert parsed("{}\x00\x00ci")
    assert parsed("{}\x00shop\x00")
    assert not parsed("{'limit': 4}\x00\x00ci")
    assert not parsed("{}\x00\x00of_another_profile")
