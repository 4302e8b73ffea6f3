"""A whole target folder out of the cache: without decoding it, and never an old answer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from graph.test_warm import FIXTURES, told

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.artifacts.decode_json import ColumnsOnDemand
from dbt_ripple.artifacts.project import Column
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.analysis_coverage import AnalysisCoverage, analysis_coverage
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.column_edges import edges_into, value_edges
from dbt_ripple.graph.hooks import with_statements
from dbt_ripple.graph.target_folder import TargetFolder

Manifest = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "v12_dbt_1_11", tmp_path / "target")
    return tmp_path / "target"


def ask(folder: Path) -> tuple[AnalysisCoverage, bool]:
    """What `analyze` says, and whether the project had to be decoded for it."""
    with Cache(folder.parent / "cache") as cache:
        target = TargetFolder(folder, cache)
        summary = target.summary()
    return summary, target.was_read


def without_times(summary: AnalysisCoverage) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in summary.__struct_fields__ if name != "seconds"}


def edit(folder: Path, change: Callable[[Manifest], Any]) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    change(content)
    (folder / "manifest.json").write_text(json.dumps(content))


def test_a_load_tells_the_columns_of_a_seed_apart_and_no_other_analysis_does(folder: Path) -> None:
    """Of the checksum, what is not loaded knows nothing more: two sides of a comparison read both files."""
    seeds = folder.parent / "seeds"
    seeds.mkdir()
    found: list[list[list[str]]] = []
    seed = next(u for u in read_project(folder).nodes if u.startswith("seed."))
    for value in ("1", "2"):
        text = f"a,b\n{value},x\n"
        (seeds / "s.csv").write_text(text)

        def change(manifest: Manifest, text: str = text) -> None:
            checksum = {"name": "sha256", "checksum": sha256(text.strip().encode()).hexdigest()}
            place = {"root_path": str(folder.parent), "original_file_path": "seeds/s.csv"}
            manifest["nodes"][seed] |= {"checksum": checksum, **place}
            manifest["metadata"]["adapter_type"] = "spark"

        edit(folder, change)
        (folder / "catalog.json").unlink(missing_ok=True)
        target = TargetFolder(folder, None)
        analyses = (target.as_loaded(), target.analysis(expressions=True, own=True))
        found.append([a.nodes[seed].fingerprints for a in analyses])
    (then, plain_then), (now, plain_now) = found
    assert [a == b for a, b in zip(then[:2], now, strict=False)] == [False, True]
    assert not any(a == b for a, b in zip(plain_then, plain_now, strict=True))


@pytest.mark.parametrize("fixture", ["v10_dbt_1_6", "v11_dbt_1_7", "v12_dbt_1_11"])
def test_all_of_it_comes_back(tmp_path: Path, fixture: str) -> None:
    of = read_project(FIXTURES / fixture)
    for tests in (True, False):
        for expressions in (True, False):
            fresh = analyse(of, tests=tests, expressions=expressions)
            for warm in (False, True):
                with Cache(tmp_path / f"{tests}{expressions}") as cache:
                    target = TargetFolder(FIXTURES / fixture, cache)
                    analysis = target.analysis(tests=tests, expressions=expressions)
                    assert told(analysis) == told(fresh)
                    assert target.was_read != warm
                    assert target.analysis(tests=False).edges == fresh.edges
                    assert told(target.analysis(tests=tests, expressions=expressions)) == told(
                        fresh
                    )
                    assert without_times(target.summary()) == without_times(
                        analysis_coverage(of, analyse(of, tests=False), 0.0)
                    )


def test_the_second_time_nothing_is_decoded(folder: Path) -> None:
    first, read = ask(folder)
    assert read
    second, read = ask(folder)
    assert not read
    assert without_times(second) == without_times(first)
    assert second.seconds["parse"] == second.seconds["link"] == 0
    with Cache(folder.parent / "cache") as cache:
        target = TargetFolder(folder, cache)
        assert (
            target.analysis(tests=False).edges == analyse(read_project(folder), tests=False).edges
        )
        assert not target.was_read
        assert told(target.analysis(tests=False)) == told(analyse(target.project, tests=False))


def test_a_warm_analyze_imports_no_parser(folder: Path) -> None:
    script = (
        "import sys; from dbt_ripple import cli\n"
        "try: cli.main()\n"
        "finally: print(sorted({'sqlglot', 'pyarrow', 'rich', 'dbt_ripple.graph.analyse_project'} & "
        "set(sys.modules)), file=sys.stderr)"
    )
    loaded = []
    for _ in range(2):
        options = ["analyze", "--target-path", folder, "--cache-dir", folder.parent / "cache"]
        done = subprocess.run(
            [sys.executable, "-c", script, *options], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        loaded.append(done.stderr.strip())
    assert loaded == ["['dbt_ripple.graph.analyse_project', 'sqlglot']", "[]"]


def compiled_again(manifest: Manifest) -> None:
    manifest["metadata"] |= {
        "generated_at": "2031-01-01T00:00:00Z",
        "invocation_id": "11111111-2222-3333-4444-555555555555",
        "invocation_started_at": "2031-01-01T00:00:00Z",
        "user_id": "somebody else",
        "env": {"CI": "1"},
    }
    for section in ("nodes", "sources", "macros"):
        for node in manifest[section].values():
            if "created_at" in node:
                node["created_at"] = 1924992000.25


def test_the_same_project_compiled_again_is_the_same(folder: Path) -> None:
    edit(folder, lambda _: None)
    ask(folder)
    edit(folder, compiled_again)
    assert not ask(folder)[1]
    document = json.loads((folder / "catalog.json").read_text())
    document["metadata"]["generated_at"] = "2031-01-01T00:00:00Z"
    text = json.dumps(document)
    (folder / "catalog.json").write_text(text)
    ask(folder)
    (folder / "catalog.json").write_text(text.replace("2031-01-01", "2032-02-02"))
    assert not ask(folder)[1]


def first(nodes: Manifest, kind: str) -> Manifest:
    first_node: Manifest = next(n for n in nodes.values() if n["resource_type"] == kind)
    return first_node


@pytest.mark.parametrize(
    "change",
    [
        lambda m: first(m["nodes"], "model").update(compiled_code="select 1 as one"),
        lambda m: first(m["nodes"], "model")["columns"].update(
            created_at={"name": "created_at", "description": "1"}
        ),
        lambda m: first(m["nodes"], "model").update(raw_code='{{ config() }} "created_at": 5'),
        lambda m: m["metadata"].update(adapter_type="snowflake"),
        lambda m: m["metadata"].update(dbt_version="1.11.99"),
        lambda m: m["nodes"].pop(next(iter(m["nodes"]))),
    ],
)
def test_any_other_change_is_seen(folder: Path, change: Callable[[Manifest], None]) -> None:
    edit(folder, lambda _: None)
    ask(folder)
    edit(folder, change)
    analysed_project, read = ask(folder)
    assert read
    project = read_project(folder)
    assert without_times(analysed_project) == without_times(
        analysis_coverage(project, analyse(project, tests=False), 0.0)
    )


def test_a_moment_in_a_text_counts(folder: Path) -> None:
    """``created_at`` is a moment where it is a key, not where it stands in SQL."""
    for moment in ("1", "2"):
        edit(
            folder,
            lambda m, moment=moment: first(m["nodes"], "model").update(
                compiled_code=f"""select '"created_at": {moment}' as x"""
            ),
        )
        assert ask(folder)[1]


def test_a_catalog_that_comes_or_goes_is_seen(folder: Path) -> None:
    ask(folder)
    (folder / "catalog.json").rename(folder / "away.json")
    analysed_project, read = ask(folder)
    assert read
    assert not analysed_project.has_catalog
    (folder / "away.json").rename(folder / "catalog.json")
    analysed_project, read = ask(folder)
    assert not read
    assert analysed_project.has_catalog


def test_a_seed_whose_file_changes_is_seen(folder: Path) -> None:
    def own_folder(manifest: Manifest) -> None:
        for node in manifest["nodes"].values():
            if node["resource_type"] == "seed":
                node["root_path"] = str(folder.parent)

    edit(folder, own_folder)
    (folder / "catalog.json").unlink()
    seed = first(json.loads((folder / "manifest.json").read_text())["nodes"], "seed")
    file = folder.parent / seed["original_file_path"]
    ask(folder)
    assert not ask(folder)[1]
    file.parent.mkdir(parents=True)
    file.write_text("id,name\n1,a\n")
    assert ask(folder)[1]
    assert not ask(folder)[1]
    file.write_text("id,name,more\n1,a,b\n")
    assert ask(folder)[1]
    file.unlink()
    assert not ask(folder)[1]


def test_a_manifest_of_dbt_2_is_always_read(folder: Path) -> None:
    edit(folder, lambda m: m["metadata"].update(dbt_version="2.0.0"))
    assert ask(folder)[1]
    assert ask(folder)[1]


def test_what_cannot_be_analysed_is_refused_every_time(folder: Path) -> None:
    def parse_only(manifest: Manifest) -> None:
        for node in manifest["nodes"].values():
            node.pop("compiled_code", None)

    edit(folder, parse_only)
    for _ in range(2):
        with pytest.raises(RippleError, match="not compiled"):
            ask(folder)
    (folder / "manifest.json").write_text('{"metadata": {}, "nodes"')
    for _ in range(2):
        with pytest.raises(RippleError):
            ask(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(RippleError, match=r"no manifest\.json"):
        ask(folder)


def test_a_manifest_that_changes_meanwhile_is_what_was_read_first(folder: Path) -> None:
    """What is kept under a key is made of the bytes of that key, not of the file of a bit later."""
    before = read_project(folder)
    with Cache(folder.parent / "cache") as cache:
        target = TargetFolder(folder, cache)
        edit(folder, lambda m: m["nodes"].clear())
        assert target.summary().models == len(before.of_type("model"))
    with Cache(folder.parent / "cache") as cache:
        assert TargetFolder(folder, cache).summary().models == 0


def of_nodes(project: Project) -> dict[str, dict[str, Any]]:
    """All that is known of each node."""
    return {
        unique_id: {**msgspec.structs.asdict(node), "columns": dict(node.columns)}
        for unique_id, node in project.nodes.items()
    }


def more_of_columns(manifest: Manifest) -> None:
    """What a project may say of its columns, and one that dbt says the name of only once."""
    columns = manifest["nodes"]["model.shop.stg_orders"]["columns"]
    columns["order_id"] |= {"config": {"meta": {"pii": True}, "tags": ["key"]}, "tags": ["own"]}
    columns["order_id"]["a_property_of_ours"] = 1
    del columns["amount"]["name"]


def of_another_type(manifest: Manifest) -> None:
    """What dbt does not write: a tag that is a number."""
    manifest["nodes"]["model.shop.stg_orders"]["columns"]["order_id"]["tags"] = 5


def hooked(manifest: Manifest) -> None:
    config = manifest["nodes"]["model.shop.stg_orders"]["config"]
    config["post-hook"] = [{"sql": "delete from other", "transaction": True}]
    manifest["nodes"]["model.shop.dim_customers.v2"]["raw_code"] += "{% call statement('s') %}"


@pytest.mark.parametrize(
    ("change", "on_demand"),
    [
        (lambda _: None, True),
        (more_of_columns, True),
        (of_another_type, False),
        (hooked, True),
    ],
)
def test_a_project_that_was_read_before_is_the_same(
    folder: Path, change: Callable[[Manifest], None], on_demand: bool
) -> None:
    edit(folder, change)
    fresh = read_project(folder)
    for warm in (False, True):
        with Cache(folder.parent / "cache") as cache:
            project = TargetFolder(folder, cache).project
        columns = project.nodes["model.shop.stg_orders"].columns
        assert (isinstance(columns, ColumnsOnDemand) and not columns.is_decoded) == (
            warm and on_demand
        )
        assert of_nodes(project) == of_nodes(fresh)
        assert columns == fresh.nodes["model.shop.stg_orders"].columns == columns
        assert (project.notes, project.as_written) == (fresh.notes, on_demand)
        assert project.with_statements == [
            node.unique_id for node in with_statements(fresh.nodes.values())
        ]
        assert project.having(nodes=project.nodes).with_statements is None


def test_columns_on_demand_differ_where_one_of_them_does(folder: Path) -> None:
    def columns() -> Mapping[str, Column]:
        with Cache(folder.parent / "cache") as cache:
            TargetFolder(folder, cache).project  # noqa: B018  (so that it was read before)
            return TargetFolder(folder, cache).project.nodes["model.shop.stg_orders"].columns

    before, again = columns(), columns()
    assert again == before
    assert isinstance(before, ColumnsOnDemand)
    assert not before.is_decoded
    edit(
        folder,
        lambda m: m["nodes"]["model.shop.stg_orders"]["columns"]["amount"].update(data_type="int"),
    )
    now = columns()
    assert now != before
    assert now["amount"].data_type == "int"
    assert list(now) == list(before)


def test_without_a_cache_everything_is_made(folder: Path) -> None:
    target = TargetFolder(folder)
    assert target.analysis(tests=False).edges == analyse(read_project(folder), tests=False).edges
    assert target.was_read


def test_edges_into_some_nodes_are_those_of_all_of_them(tmp_path: Path) -> None:
    fresh = analyse(read_project(FIXTURES / "v12_dbt_1_11"))
    wanted = {unique_id for unique_id in fresh.nodes if unique_id.startswith("model.")}
    some = edges_into(fresh.edges, wanted)  # before the others are made
    assert some
    assert some == [edge for edge in fresh.edges if edge.child_id in wanted]
    assert edges_into(fresh.edges, wanted) == edges_into(list(fresh.edges), wanted) == some
    of_values = [
        ((edge.parent_id, edge.parent_column), edge.child_id, edge.child_column)
        for edge in fresh.edges
        if edge.type == "DIRECT" and not edge.masking
    ]
    for edges in (analyse(read_project(FIXTURES / "v12_dbt_1_11")).edges, list(fresh.edges)):
        assert sorted(value_edges(edges)) == sorted(set(of_values))
        assert sorted(value_edges(edges, wanted)) == sorted(
            edge for edge in set(of_values) if edge[1] in wanted
        )
    for _ in range(2):
        with Cache(tmp_path) as cache:
            kept = TargetFolder(FIXTURES / "v12_dbt_1_11", cache).analysis()
            assert edges_into(kept.edges, wanted) == some


def test_what_two_sides_say_alike_is_one_object(folder: Path) -> None:
    other = folder.parent / "other"
    shutil.copytree(folder, other)

    def another_query(manifest: Manifest) -> None:
        model = manifest["nodes"]["model.shop.stg_orders"]
        model["compiled_code"] += " limit 3"

    edit(other, another_query)
    fresh = analyse(read_project(other))
    for warm in (False, True):
        with Cache(folder.parent / "cache") as cache:
            one = TargetFolder(folder, cache)
            two = TargetFolder(other, cache, like=one)
            there, here = one.analysis(), two.analysis()
        assert told(here) == told(fresh)
        assert (
            here.nodes["source.shop.raw.orders"] is there.nodes["source.shop.raw.orders"]
        ) == warm
        changed = here.nodes["model.shop.stg_orders"], there.nodes["model.shop.stg_orders"]
        assert changed[0].rows_fingerprint != changed[1].rows_fingerprint


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("parsed_together", [False, True])
def test_nodes_that_two_sides_say_alike_are_one_object(
    folder: Path, cached: bool, parsed_together: bool
) -> None:
    edit(folder, lambda _: None)  # so that both are written alike
    other = folder.parent / "other"
    shutil.copytree(folder, other)

    def edited(manifest: Manifest) -> None:
        nodes = manifest["nodes"]
        nodes["model.shop.stg_orders"]["columns"]["amount"].update(data_type="int")
        nodes["model.shop.time_spine"]["config"]["tags"] = ["new"]
        nodes["model.shop.new"] = {**nodes["model.shop.stg_orders"], "name": "new"}
        del nodes["model.shop.new"]["unique_id"]
        for section in ("nodes", "sources", "macros"):
            for node in manifest[section].values():
                node["created_at"] += 0 if parsed_together else 1.5

    edit(other, edited)
    alone = of_nodes(read_project(folder)), of_nodes(read_project(other))
    for _ in range(2):
        with Cache(folder.parent / "cache") as cache:
            one = TargetFolder(folder, cache if cached else None, late=True)
            there = one.project.nodes
            two = TargetFolder(other, cache if cached else None, like=one)
            here = two.project.nodes
        assert (of_nodes(one.project), of_nodes(two.project)) == alone
        new = {"model.shop.stg_orders", "model.shop.time_spine", "model.shop.new"}
        read_at_once = {u for u in here if u.split(".")[0] in (*READ_AT_ONCE, "test")}
        shared = {u for u in here if here[u] is there.get(u)}
        assert shared == (read_at_once - new if parsed_together else set())
        assert one.as_other_side() is None  # the text is kept for one other side


READ_AT_ONCE = ("analysis", "model", "operation", "seed", "snapshot", "source")


def test_what_is_kept_of_another_side_is_not_written_into(folder: Path) -> None:
    """A disabled model on head takes its tests with it; base keeps them."""
    edit(folder, lambda _: None)
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    attached: list[str] = []

    def disabled(manifest: Manifest) -> None:
        model = "model.shop.stg_orders"
        manifest["disabled"][model] = [manifest["nodes"].pop(model)]
        attached.extend(
            u for u, node in manifest["nodes"].items() if node.get("attached_node") == model
        )

    edit(other, disabled)
    one = TargetFolder(folder, late=True)
    there = of_nodes(one.project)
    two = TargetFolder(other, like=one)
    assert attached
    assert not two.project.nodes.keys() & {*attached}
    assert two.project.disabled == read_project(other).disabled
    assert of_nodes(two.project) == of_nodes(read_project(other))
    assert of_nodes(one.project) == there


@pytest.mark.parametrize("differs", [False, True])
def test_a_catalog_that_two_sides_have_is_decoded_once(folder: Path, differs: bool) -> None:
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    if differs:
        catalog = json.loads((other / "catalog.json").read_text())
        catalog["nodes"]["model.shop.stg_orders"]["columns"].popitem()
        (other / "catalog.json").write_text(json.dumps(catalog))
    one = TargetFolder(folder, late=True)
    _ = one.project
    two = TargetFolder(other, late=True, like=one)
    there, here = one.project.catalog, two.project.catalog
    assert dict(here) == dict(read_project(other).catalog)
    for unique_id in here:
        assert (here[unique_id] is there[unique_id]) != differs
    assert (here == there) != differs


def test_only_the_side_with_the_catalog_knows_the_types_of_its_models(folder: Path) -> None:
    other = folder.parent / "head"
    shutil.copytree(folder, other)
    (other / "catalog.json").unlink()
    base, head = (TargetFolder(side, sources_of=folder).project for side in (folder, other))
    assert {u.split(".")[0] for u in base.catalog} == {"source"}
    assert dict(base.catalog) == dict(head.catalog) == dict(head.types)
    assert {u.split(".")[0] for u in base.types} > {"source"}
    assert dict(base.types) == dict(read_project(folder).catalog)
