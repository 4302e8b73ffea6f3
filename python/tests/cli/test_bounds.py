"""What somebody may write into a project is bounded: one line and exit code 2, never a traceback."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from hand_made import LISTED, RAW, macro, node, orders, project
from twin_project import Command

from dbt_ripple import cli
from dbt_ripple.artifacts.assets_file import parse_assets
from dbt_ripple.artifacts.project import Project
from dbt_ripple.artifacts.read_yaml import MOST_DEPTH, parse_yaml, read_yaml
from dbt_ripple.dbt_runner.base_ref import both_sides
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.flow.hook_statements import effects_of
from dbt_ripple.governance.gate import gate
from dbt_ripple.governance.ripple_yml import read_config
from dbt_ripple.graph.unnamed_reads import words_of_names
from dbt_ripple.jinja.text import tree_of
from dbt_ripple.pages.docs_site import DocsSite, copy_assets

ALIASES = "a0: &a0 [x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 11)
)
DEEP = "a: " + "[" * 50_000 + "]" * 50_000
DEEP_BLOCK = "- " * 50_000 + "x"
ITSELF = "a: &a [*a]"
BOMBS = pytest.mark.parametrize(
    "text", [ALIASES, DEEP, DEEP_BLOCK, ITSELF, "{" * 50_000, "? " * 50_000]
)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["dbt-ripple", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(str(stopped.value.code)), out, err

    return run


@BOMBS
def test_yaml_is_bounded(text: str) -> None:
    # Time of this process: others may be busy.
    start = time.process_time()
    with pytest.raises(RippleError, match=r"ripple_assets\.yml"):
        parse_assets(text, "ripple_assets.yml")
    with pytest.raises(RippleError, match=r"^x\.yml: "):
        parse_yaml(text, "x.yml")
    assert time.process_time() - start < 5


def test_what_is_within_the_bounds_is_read() -> None:
    assert parse_yaml("a: &a [1, 2]\nb: [*a, *a]\n", "") == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    depth = MOST_DEPTH - 10
    assert parse_yaml("[" * depth + "]" * depth, "")
    assert parse_yaml("", "") is None


@BOMBS
@pytest.mark.parametrize("name", ["ripple.yml", "dbt_project.yml"])
def test_a_command_says_it_in_one_line(
    text: str, name: str, tmp_path: Path, command: Command
) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: p\n")
    (tmp_path / name).write_text(text)
    code, out, err = command("gate", "--state", "x", "--project-dir", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert name in err and "Traceback" not in err


@BOMBS
def test_dbt_is_not_given_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: p\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "some.yml").write_text(text)
    with (
        pytest.raises(RippleError, match=r"some\.yml: is (nested too deep|too large)"),
        both_sides(tmp_path, "main", DbtOptions()),
    ):
        raise AssertionError


def test_a_mistake_of_ours_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Command
) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise RecursionError("too\ndeep")

    monkeypatch.setattr("dbt_ripple.governance.ripple_yml.read_config", stumble)
    code, out, err = command("gate", "--state", "x", "--project-dir", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "RecursionError (too deep)" in err
    monkeypatch.setenv(cli.TRACEBACK, "1")
    monkeypatch.setattr("sys.argv", ["dbt-ripple", "gate", "--state", "x"])
    with pytest.raises(RecursionError):
        cli.main()


# --- texts -----------------------------------------------------------------------------------------

MANY = 50_000
LONG = pytest.mark.parametrize(
    "text",
    [c * MANY for c in ("_", " ", "\\'", '"', "`", "a.", "(", "{#", "{{ ", "{%", "\n", "env_var(")],
    ids=str.strip,
)


def hooked(text: str) -> Project:
    config = {"materialized": "table", "post-hook": [{"sql": text, "transaction": True}]}
    return project(
        orders(),
        node("model.p.m", "select id from `s`.`orders`", RAW, config=config),
        catalog=LISTED,
    )


@LONG
def test_long_texts_in_hooks_and_macros_take_seconds(text: str) -> None:
    start = time.process_time()
    gate(hooked("select 1"), hooked(text))
    gate(hooked("select 1"), hooked(f"insert into {{{{ this }}}} select '{text}' {{{{ x }}}}"))
    sides = [
        project(
            orders(),
            node("model.p.m", "select 1 as a", raw="select {{ x() }}", macros=["macro.p.x"]),
            macros=[macro("macro.p.x", f"{{% macro x() %}}{body}{{% endmacro %}}")],
        )
        for body in ("a", text)
    ]
    gate(*sides)
    assert time.process_time() - start < 20


def test_names_of_relations_are_found_in_one_pass() -> None:
    start = time.process_time()
    assert words_of_names("_" * MANY) == {"_" * MANY}
    assert words_of_names(f"{'a' * MANY}.b c") == {f"{'a' * MANY}.b", "c"}
    assert words_of_names(" " * MANY + "a" + " " * MANY) == {"a"}
    assert time.process_time() - start < 1
    assert effects_of('""' * 10, "duckdb").anything


@pytest.mark.parametrize(
    "text",
    [
        "{{ 1" + "+1" * 20_000 + " }}",
        "{{ 1" + "|abs" * 5_000 + " }}",
        "{{ a" + ".b" * 20_000 + " }}",
    ],
)
def test_jinja_that_is_too_deep_is_taken_for_anything(text: str) -> None:
    assert tree_of(text) is None
    gate(hooked("select 1"), hooked(text))
    assert tree_of("{{ 1" + "+1" * 100 + " }}") is not None


# --- paths -----------------------------------------------------------------------------------------


def test_what_is_read_stays_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("root:x:0:0\nrule,unique_id\n")
    inside = tmp_path / "project"
    inside.mkdir()
    for text in (
        "exceptions: ../secret\n",
        f"exceptions: {tmp_path}/secret\n",
        "exceptions: link\n",
    ):
        (inside / "link").unlink(missing_ok=True)
        (inside / "link").symlink_to(tmp_path / "secret")
        (inside / "ripple.yml").write_text(text)
        with pytest.raises(RippleError) as error:
            read_config(inside)
        assert "outside of the project" in str(error.value) and "x:0:0" not in str(error.value)
    # A file of the project that is no list of exceptions is not quoted either.
    (inside / "own").write_text("root:x:0:0\na\n")
    (inside / "ripple.yml").write_text("exceptions: own\n")
    with pytest.raises(RippleError) as error:
        read_config(inside)
    assert "x:0:0" not in str(error.value)
    (inside / "ripple.yml").unlink()
    (inside / "ripple.yml").symlink_to(tmp_path / "secret")
    with pytest.raises(RippleError, match="link out of the project") as error:
        read_config(inside)
    assert "x:0:0" not in str(error.value)
    (inside / "ripple.yml").unlink()
    (inside / "ripple.yml").symlink_to(inside / "rules")
    (inside / "rules").write_text("rules: {owner_missing: block}\n")
    assert read_config(inside).levels == {"owner_missing": "block"}


def test_what_is_no_yaml_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "x.yml"
    file.write_text("user: me\npassword: [hunter2\n")
    with pytest.raises(RippleError) as error:
        read_yaml(file)
    assert "hunter2" not in str(error.value) and "line" in str(error.value)


def test_the_docs_are_not_written_through_links(tmp_path: Path) -> None:
    site = DocsSite({"index.html": b"new", "badges/model.p.a.slo.svg": b"new"})
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    for folder in (out, elsewhere, elsewhere / "badges"):
        folder.mkdir()
    for target in (elsewhere / "index.html", elsewhere / "badges" / "model.p.a.slo.svg"):
        target.write_text("old")
    (out / "index.html").symlink_to(elsewhere / "index.html")
    with pytest.raises(RippleError, match="is a link"):
        site.write(out)
    (out / "index.html").unlink()
    (out / "badges").symlink_to(elsewhere / "badges")
    with pytest.raises(RippleError, match="is a link"):
        site.write(out)
    assert (elsewhere / "badges" / "model.p.a.slo.svg").read_text() == "old"
    assert not (out / "index.html").exists()  # all of it is looked at before anything is written
    # The folder itself may be one: whoever calls it has named it.
    linked = tmp_path / "linked"
    linked.symlink_to(elsewhere)
    site.write(linked)
    assert (elsewhere / "index.html").read_text() == "new"


def test_pictures_of_somebody_else_stay(tmp_path: Path) -> None:
    (tmp_path / "badges").mkdir()
    for name in ("logo.svg", "model.p.gone.slo.svg"):
        (tmp_path / "badges" / name).write_text("")
    DocsSite({"badges/model.p.a.slo.svg": b""}).write(tmp_path)
    there = sorted(file.name for file in (tmp_path / "badges").iterdir())
    assert there == ["logo.svg", "model.p.a.slo.svg"]


def test_links_among_the_pictures_of_the_project_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    pictures = tmp_path / "target" / "pictures"
    pictures.mkdir(parents=True)
    (pictures / "logo.svg").write_text("y")
    (pictures / "link.svg").symlink_to(tmp_path / "secret")
    (tmp_path / "dbt_project.yml").write_text("name: p\nasset-paths: [pictures]\n")
    copy_assets(tmp_path, tmp_path / "target", tmp_path / "out")
    assert [f.name for f in (tmp_path / "out" / "pictures").iterdir()] == ["logo.svg"]


def test_help_names_no_deps() -> None:
    assert "--no-deps" in CliRunner().invoke(cli.cli, ["gate", "--help"]).output
