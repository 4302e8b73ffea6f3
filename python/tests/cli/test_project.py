"""`from dbt_ripple import Project`: the same answers as the command line, as values; nothing printed, nothing changed."""

from __future__ import annotations

import dataclasses
import gc
import resource
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_shell import FIXTURE, Shell
from two_sides import FROM_RAW, STG, UNIQUE, Sides

from dbt_ripple import Project, RippleError
from dbt_ripple.governance.asset_edits import Registration
from dbt_ripple.session.answers import Reached

EDITED = FROM_RAW.replace("amount,", "amount * 2 as amount,") + " where amount > 0"


@pytest.fixture
def edited(sides: Sides) -> Sides:
    sides.write_sql(STG, EDITED)
    return sides


def test_a_column_and_what_it_comes_from(shell: Shell) -> None:
    project = Project.load(".")
    column = project["stg_orders.AMOUNT"]
    assert (str(column), column.resource_type) == (f"{STG}.amount", "model")
    (above,) = column.upstream(depth=3)
    assert above == Reached(
        *("source.shop.raw.orders", "orders", "source", "amount", 1),
        *(("IDENTITY",), None, False, False, None),
    )
    below = column.downstream()
    assert {one.unique_id for one in below} >= {"model.shop.dim_customers.v1"}
    assert len(column.downstream(depth=0)) == 0


def test_a_transformation_has_its_sql_and_kind(edited: Sides) -> None:
    project = Project.load(".")
    (above,) = [one for one in project["stg_orders.amount"].upstream() if one.column == "amount"]
    assert (above.kinds, above.transformation) == (("TRANSFORMATION",), None)
    (same,) = [
        n for n in project.trace("raw.orders.amount") if n.unique_id == STG and n.column == "amount"
    ]
    assert (same.kinds, same.transformation) == (("TRANSFORMATION",), "amount * 2")


def test_readers_are_one_step_away_tests_included(shell: Shell) -> None:
    readers = Project.load(".")["stg_orders.order_id"].readers()
    assert UNIQUE in {one.unique_id for one in readers}
    assert {one.depth for one in readers} == {1}
    assert len({one.unique_id for one in readers}) == len(readers)


ASKED: dict[str, tuple[tuple[str, ...], Callable[[Project], Any]]] = {
    "trace": (("stg_orders",), lambda p: p.trace("stg_orders")),
    "trace a column": (
        ("stg_orders.amount", "-d", "both", "--depth", "2", "--include-tests"),
        lambda p: p.trace("stg_orders.amount", direction="both", depth=2, tests=True),
    ),
    "trace by operators": (("2+stg_orders",), lambda p: p.trace("2+stg_orders")),
    "trace to some": (
        ("raw.orders", "--select", "resource_type:exposure"),
        lambda p: p.trace("raw.orders", select=["resource_type:exposure"]),
    ),
    "impact": (
        (
            "raw.orders",
            "--rename",
            "amount:total",
            "--drop",
            "ordered_at",
            "--add",
            "c:int:required",
        ),
        lambda p: p.impact(
            "raw.orders",
            rename={"amount": "total"},
            drop=["ordered_at"],
            add={"c": "int"},
            required=["c"],
        ),
    ),
    "impact of a removal": (
        ("stg_orders", "--remove"),
        lambda p: p.impact("stg_orders", remove=True),
    ),
    "select": (("--state", "state"), lambda p: p.select("state")),
    "select without facts": (
        ("--state", "state", "--no-facts"),
        lambda p: p.select(Project.load("state"), facts=False),
    ),
    "gate": (("--state", "state"), lambda p: p.gate("state")),
    "gate with tests": (
        ("--state", "state", "--with", "select", "--approved-by", "Ada"),
        lambda p: p.gate("state", with_tests=True, approved_by="Ada"),
    ),
    "explain a test": ((UNIQUE, "--state", "state"), lambda p: p.explain(UNIQUE, "state")),
    "explain a column": (
        ("stg_orders.amount", "--state", "state"),
        lambda p: p.explain("stg_orders.amount", "state"),
    ),
    "diagnose": (
        ("stg_orders.amount", "--state", "state"),
        lambda p: p.diagnose("stg_orders.amount", since=["state"]),
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_is_that_of_the_command(edited: Sides, name: str) -> None:
    options, ask = ASKED[name]
    answer = ask(Project.load("."))
    done = edited.shell(name.split()[0], *options, "--format", "json")
    assert done.json == answer.document()


def test_the_selection(edited: Sides) -> None:
    chosen = Project.load(".").select("state", facts=False)
    assert UNIQUE in {test.unique_id for test in chosen}
    assert chosen.to_dbt_args()[:3] == ["--indirect-selection", "empty", "--select"]
    assert {"stg_orders", "unique_stg_orders_order_id"} <= {*chosen.to_dbt_args()}
    assert chosen.seconds > 0 and len(chosen) == len(chosen.tests)
    why = chosen.why(chosen.tests[0])
    assert why.verdict == "selected" and why.path
    assert chosen.why("unique_stg_orders_order_id").unique_id == UNIQUE
    with pytest.raises(RippleError, match="did you mean"):
        chosen.why("unique_stg_order_order_id")


def test_nothing_changed_is_no_argument_for_dbt(sides: Sides) -> None:
    chosen = Project.load(".").select("state")
    assert (list(chosen), chosen.models, chosen.to_dbt_args()) == ([], (), [])


def test_a_decision_in_five_lines(edited: Sides) -> None:
    decided = Project.load(".").gate("state")
    lines = decided.brief().splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        *("DECISION", "RISK", "AFFECTED SYSTEMS", "REASON", "RECOMMENDATION")
    ]
    text = edited.shell("gate", "--state", "state").out
    assert f"reason: {decided.reason}\n" in text
    assert f"recommendation: {decided.recommendation}\n" in text


def test_what_nothing_reads_is_approved_in_a_sentence(shell: Shell) -> None:
    answer = Project.load(".").impact("model.shop.time_spine", remove=True)
    assert (answer.decision, answer.affected_systems) == ("APPROVED", 0)
    assert answer.reason == "Nothing known reads what would change."


def test_answers_are_frozen(edited: Sides) -> None:
    project = Project.load(".")
    for answer in (project.trace("stg_orders"), project.gate("state"), project.select("state")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            answer.notes = ()  # type: ignore[misc]
        for row in answer.rows[:1]:
            with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
                row.unique_id = "x"  # type: ignore[attr-defined]


def test_tables_have_the_same_types_when_they_are_empty(shell: Shell) -> None:
    project = Project.load(".")
    full, empty = project.trace("stg_orders"), project.trace("stg_orders", depth=0)
    assert len(full) and not len(empty)
    assert full.to_arrow().schema == empty.to_arrow().schema
    frame = full.to_pandas()
    assert list(frame.columns) == [one.name for one in dataclasses.fields(Reached)]
    assert len(frame) == len(full)
    assert full.to_arrow().column("depth").to_pylist() == [one.depth for one in full]


def test_a_graph(shell: Shell) -> None:
    graph = Project.load(".")["raw.orders.amount"].downstream(depth=1).graph()
    assert ("source.shop.raw.orders", "amount") in graph
    subtypes = {of["subtype"] for *_, of in graph.edges(data=True)}
    assert "IDENTITY" in subtypes


def test_without_networkx_one_line_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RippleError, match=r"networkx is not installed.*pip install networkx"):
        Project.load(".", cache=False).trace("stg_orders").graph()


def test_html_shows_names_as_text(shell: Shell) -> None:
    trace = Project.load(".").trace("stg_orders")
    hostile = dataclasses.replace(
        trace,
        reached=(dataclasses.replace(trace.reached[0], name="<script>x</script>"),),
        notes=("<b>",),
    )
    page = hostile._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "<b>" not in page
    assert "<table>" in page and "<svg" in page
    assert "<svg" not in Project.load(".").trace("stg_orders", depth=0)._repr_html_()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda p: p["stg_ordes"], "did you mean"),
        (lambda p: p["stg_orders.amout"], "did you mean amount"),
        (lambda p: p.trace("nothing_like_it_at_all"), "no node of this name"),
        (lambda p: p.trace("2+stg_orders", direction="both"), "give one of them"),
        (lambda p: p.impact("stg_orders"), "no change is given"),
        (lambda p: p.impact("stg_orders.amount", drop=["amount"]), "names a column"),
        (lambda p: p.impact("stg_orders", required=["x"]), "is no new column"),
        (lambda p: p.select("nowhere"), "no such folder"),
        (lambda p: p.gate(p), "own target folder"),
        (lambda p: p.check_sql("stg_orders", "select 1"), "no dbt_project.yml"),
        (lambda p: Project.load("target/manifest.json"), "is not a folder"),
        (lambda p: Project.at("main"), "no dbt_project.yml"),
    ],
)
def test_whatever_is_wrong_is_one_line(
    shell: Shell, ask: Callable[[Project], Any], said: str
) -> None:
    with pytest.raises(RippleError, match=said) as refused:
        ask(Project.load("."))
    assert "\n" not in str(refused.value)


def test_names_are_in_the_project_or_not(shell: Shell) -> None:
    project = Project.load(".")
    assert "stg_orders.amount" in project and "stg_orders.amout" not in project and 3 not in project
    assert STG in list(project)


def test_a_folder_of_artifacts_is_a_project(shell: Shell) -> None:
    assert [*Project.load("target").trace("stg_orders")] == [*Project.load(".").trace("stg_orders")]


def test_notes_are_in_the_answer_and_not_on_stderr(
    edited: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("target", "state"):
        Path(folder, "catalog.json").unlink()
    capsys.readouterr()
    decided = Project.load(".").gate("state")
    assert capsys.readouterr() == ("", "")
    said = edited.shell("gate", "--state", "state", "--verbose").err
    assert decided.notes and all(note in said for note in decided.notes)


def test_what_is_registered_elsewhere_is_read_from_there(tmp_path: Path) -> None:
    file = tmp_path / "assets" / "own.yml"
    file.parent.mkdir()
    project = Project.load(tmp_path, file=file, cache=False, now=False)
    project.register([Registration(id="table:raw")])
    project.register([Registration(id="table:clean", reads=["table:raw"])])
    assert [one.name for one in project["table:raw"].downstream()] == ["clean"]
    assert not (tmp_path / "ripple_assets.yml").exists()
    file.unlink()
    with pytest.raises(RippleError, match="no such folder"):
        len(Project.load(tmp_path, file=file, cache=False).artifacts.nodes)


def test_a_project_is_read_anew_where_its_files_are_others(shell: Shell) -> None:
    project = Project.load(".").refreshed()
    before = project.artifacts
    assert project.refreshed().artifacts is before
    (Path("target") / "manifest.json").touch()
    again = project.refreshed()
    assert again is project and again.artifacts is not before
    assert set(again) == set(before.nodes)


def test_what_cannot_be_analysed_is_named(shell: Shell) -> None:
    trace = Project.load(".")["stg_orders.amount"].downstream()
    assert "model.shop.py_model" in trace.not_analysed
    assert trace.not_analysed["model.shop.py_model"]


def test_the_process_of_the_caller_is_left_as_it_is(edited: Sides) -> None:
    before = gc.get_threshold(), gc.get_freeze_count(), gc.isenabled(), sys.getrecursionlimit()
    project = Project.load(".", cache=False)
    project["stg_orders.amount"].downstream()
    project.gate("state")
    assert before == (
        *(gc.get_threshold(), gc.get_freeze_count(), gc.isenabled(), sys.getrecursionlimit()),
    )


def test_others_are_followed(shell: Shell, tmp_path: Path) -> None:
    command = shell("trace", "stg_orders", "--other-project", "target", "--format", "json")
    assert Project.load(".", others=["target"]).trace("stg_orders").document() == command.json


def test_threads_get_the_answers_of_one(shell: Shell, tmp_path: Path) -> None:
    """Four threads ask three projects 20 times each."""
    folders = []
    for number, sql in enumerate(
        (FROM_RAW, EDITED, FROM_RAW.replace("amount", "amount + 1 as amount"))
    ):
        folder = tmp_path / f"p{number}"
        shutil.copytree(FIXTURE, folder / "target")
        manifest = folder / "target" / "manifest.json"
        text = manifest.read_text()
        assert FROM_RAW in text
        manifest.write_text(text.replace(FROM_RAW, sql))
        folders.append(folder)

    def ask(project: Project) -> list[Any]:
        return [
            project["stg_orders.amount"].upstream().document(),
            project.trace("stg_orders.amount").document(),
            project.impact("raw.orders", drop=["amount"]).document(),
            project.select(FIXTURE).document(),
        ]

    alone = [ask(Project.load(folder)) for folder in folders]
    assert alone[0] != alone[1] != alone[2]
    shared = [Project.load(folder) for folder in folders]
    wrong: list[object] = []

    def work(first: int) -> None:
        try:
            for turn in range(20):
                number = (first + turn) % 3
                if ask(shared[number]) != alone[number]:
                    wrong.append((first, turn))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _import_seconds(module: str) -> float:
    """What `-X importtime` says that a module takes, the median of seven."""
    took = []
    for _ in range(7):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", f"import {module}"],
            capture_output=True,
            text=True,
            check=True,
        )
        (line,) = [x for x in done.stderr.splitlines() if x.endswith(f"| {module}")]
        took.append(int(line.split("|")[1]) / 1_000_000)
    return statistics.median(took)


def test_the_import_takes_no_longer_than_an_empty_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under 20 ms, on a machine however busy: what an empty module takes beside it is allowed for."""
    (tmp_path / "nothing_in_it.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[2]}")
    assert _import_seconds("dbt_ripple") < _import_seconds("nothing_in_it") + 0.020


@pytest.mark.slow
def test_a_warm_load_costs_no_more_than_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,000 models, in seconds of the processor: `Project.load` against `dbt-ripple trace`, in turns."""
    generate = Path(__file__).parents[2] / "bench" / "generate.py"
    subprocess.run(
        [sys.executable, str(generate), str(tmp_path / "target"), "--models", "1000"],
        check=True,
        capture_output=True,
    )
    monkeypatch.setenv("DBT_RIPPLE_CACHE_DIR", str(tmp_path / "cache"))
    from dbt_ripple.artifacts import read_project

    name = next(n.name for n in read_project(tmp_path / "target").of_type("model"))
    load = f"from dbt_ripple import Project; p = Project.load({str(tmp_path)!r})"
    ways = {
        "command": ["-m", "dbt_ripple", "trace", name, "--project-dir", str(tmp_path)],
        "load": ["-c", load],
        "load and trace": ["-c", f"{load}; list(p.trace({name!r}))"],
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(4):
        for way, arguments in ways.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if turn:  # the first fills the cache
                took[way].append(
                    after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                )
    least = {way: min(times) for way, times in took.items()}
    assert least["load"] <= least["command"], took
    # A program frees the project at its end, which the command does not.
    assert least["load and trace"] <= least["command"] * 1.4, took
