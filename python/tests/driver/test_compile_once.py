"""`--base-ref` again, without a warehouse, and without a secret: what is compiled, and what is not."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_run_tests import ripple
from tiny_project import commit, dbt, git, write

from dbt_ripple.dbt_runner.base_ref import CompiledSides, both_sides
from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.cache import FILE, Cache
from dbt_ripple.selection.select import select

pytestmark = pytest.mark.slow
STG = "select id as order_id, customer, amount * 2 as amount, status from {{ ref('raw_orders') }}"
PIVOTED = "model.tiny.pivoted"
UNREACHABLE = "tiny: {target: dev, outputs: {dev: {type: duckdb, path: no/such/folder/a.duckdb}}}"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What dbt is told, one line a command: the side and the command."""
    told: list[str] = []
    attempt = Dbt.attempt

    def noted(dbt: Dbt, *command: str, **more: Any) -> Any:
        told.append(f"{command[0]} {dbt._side}".strip())
        return attempt(dbt, *command, **more)

    monkeypatch.setattr(Dbt, "attempt", noted)
    return told


@contextmanager
def sides(
    project: Path, cache: Cache | None, ref: str = "main", **options: Any
) -> Iterator[CompiledSides]:
    given = DbtOptions(**({"target": "prod"} | options))
    with both_sides(project, ref, given, cache=cache) as compiled_sides:
        yield compiled_sides


def names(compiled_sides: CompiledSides) -> list[str]:
    return sorted(test.name for test in select(compiled_sides.base, compiled_sides.head).tests)


def texts(compiled_sides: CompiledSides, unique_id: str) -> tuple[str | None, str | None]:
    base, head = (
        side.nodes[unique_id].compiled_code for side in (compiled_sides.base, compiled_sides.head)
    )
    return base, head


def kept_values(cache: Cache) -> bytes:
    """All that is kept, as it was before it was packed."""
    cache.close()
    with sqlite3.connect(cache.path) as connection:
        stored = [row[0][8:] for row in connection.execute("select value from entries")]
    return b"\n".join(zlib.decompress(v) if v[:1] == b"\x78" else v for v in stored)


# --- again -----------------------------------------------------------------------------------------


def test_base_is_compiled_once_and_the_answer_stays(
    tiny: Path, tmp_path: Path, commands: list[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": STG})
    answers = []
    with Cache(tmp_path / "cache") as cache:
        for _ in range(2):
            commands.clear()
            with sides(tiny, cache) as compiled_sides:
                answers.append((names(compiled_sides), texts(compiled_sides, PIVOTED)))
                assert not compiled_sides.base.uncompiled()
                assert not compiled_sides.head.uncompiled()
    assert answers[0] == answers[1]
    assert answers[0][0] == ["not_null_big_orders_amount", "not_null_fct_customers_total"]
    assert commands == ["parse head", "compile head"]  # nothing on base
    commands.clear()
    with sides(tiny, None) as compiled_sides:  # as by --no-cache
        assert names(compiled_sides) == answers[0][0]
    assert commands[:3] == ["parse head", "parse base", "compile base"]


def test_what_asks_the_warehouse_is_asked_again(
    tiny: Path, tmp_path: Path, commands: list[str]
) -> None:
    with Cache(tmp_path / "cache") as cache:
        with sides(tiny, cache) as compiled_sides:
            assert "as refunded" not in str(texts(compiled_sides, PIVOTED))
        seed = tiny / "seeds" / "raw_orders.csv"
        as_it_was = seed.read_text()
        seed.write_text(as_it_was + "4,b,5,refunded\n")
        assert dbt(tiny, "seed", "--target", "prod", "--full-refresh")
        assert dbt(tiny, "run", "--target", "prod", "--select", "stg_orders")
        seed.write_text(as_it_was)
        with sides(tiny, cache) as compiled_sides:
            base, head = texts(compiled_sides, PIVOTED)
            assert base == head
            assert "as refunded" in (base or "")
            assert names(compiled_sides) == []
        # Edited, each side is asked by its own code.
        model = tiny / "models" / "pivoted.sql"
        model.write_text(model.read_text().replace("sum(", "max("))
        commands.clear()
        with sides(tiny, cache) as compiled_sides:
            base, head = texts(compiled_sides, PIVOTED)
            assert (base or "").replace("sum(", "max(") == head
            assert "as refunded" in (head or "")
        assert commands == ["parse head", "compile head", "parse base", "compile base"]


def test_the_seeds_of_base_are_those_of_its_new_worktree(tiny: Path, tmp_path: Path) -> None:
    seed = tiny / "seeds" / "raw_orders.csv"
    seed.write_text(seed.read_text().replace("a,10", "a,11"))
    with Cache(tmp_path / "cache") as cache:
        answers = []
        for _ in range(2):
            with sides(tiny, cache) as compiled_sides:
                answers.append(names(compiled_sides))
    assert answers[0] == answers[1]
    assert "not_null_big_orders_amount" in answers[1]
    assert "unique_stg_orders_order_id" not in answers[1]  # as if its columns could not be compared


def add_environment(tiny: Path) -> None:
    write(
        tiny,
        {
            "macros/environment.sql": "{% macro of_environment() %}"
            "{% if execute %}{{ env_var('OF_A_MACRO', '1') }}{% endif %}{% endmacro %}",
            "models/asks.sql": "select {{ of_environment() }} as a",
            "models/asks.yml": "models: [{name: asks, description: \"{{ env_var('OF_YAML', 'x') }}\"}]",
        },
    )
    (tiny / "models" / "pivoted.sql").unlink()  # there is nothing to ask in the other target
    commit(tiny)


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"variables": "{cutoff: 12}"}, True),
        ({"target": "dev"}, True),
        ({"OF_A_MACRO": "2"}, True),
        ({"OF_YAML": "y"}, True),
        ({"DBT_FULL_REFRESH": "0"}, True),
        ({"OF_NOTHING": "2"}, False),
        ({"DBT_ENV_CUSTOM_ENV_RUN": "2"}, False),
        ({"GITHUB_RUN_ID": "2"}, False),
    ],
    ids=str,
)
def test_base_is_compiled_again_where_what_it_read_is_not_the_same(
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commands: list[str],
    change: dict[str, str],
    again: bool,
) -> None:
    add_environment(tiny)
    monkeypatch.setenv("DBT_ENV_CUSTOM_ENV_RUN", "1")
    options = {name: value for name, value in change.items() if name.islower()}
    with Cache(tmp_path / "cache") as cache:
        with sides(tiny, cache):
            pass
        for name, value in change.items() - options.items():
            monkeypatch.setenv(name, value)
        commands.clear()
        with sides(tiny, cache, **options) as compiled_sides:
            assert names(compiled_sides) == []
            if "OF_A_MACRO" in change:
                assert texts(compiled_sides, "model.tiny.asks") == ("select 2 as a",) * 2
    assert ("parse base" in commands) == again


def test_another_commit_or_another_package_is_compiled(
    tiny: Path, tmp_path: Path, commands: list[str]
) -> None:
    package = tmp_path / "package"
    plus = "{% macro plus() %}<>{% endmacro %}"
    files = {"dbt_project.yml": "name: p\nversion: 1.0.0"}
    write(package, files | {"macros/p.sql": plus.replace("<>", "1")})
    write(
        tiny,
        {
            "packages.yml": f"packages: [{{local: {package}}}]",
            "models/plus.sql": "select {{ p.plus() }} as a",
            ".gitignore": "target/\nlogs/\n*.duckdb\ndbt_packages/\npackage-lock.yml\n",
        },
    )
    commit(tiny)
    assert dbt(tiny, "deps")

    def compiled(value: int) -> bool:
        commands.clear()
        with sides(tiny, cache) as compiled_sides:
            assert names(compiled_sides) == []
            assert texts(compiled_sides, "model.tiny.plus") == (f"select {value} as a",) * 2
        return "compile base" in commands

    with Cache(tmp_path / "cache") as cache:
        assert [compiled(1), compiled(1)] == [True, False]
        write(package, {"macros/p.sql": plus.replace("<>", "3")})
        assert [compiled(3), compiled(3)] == [True, False]
        git(tiny, "commit", "-q", "--allow-empty", "-m", "the same files")
        assert not compiled(3)
        write(tiny, {"models/big_orders.sql": "select 1 as amount, 2 as order_id"})
        commit(tiny)
        assert compiled(3)


def test_what_is_damaged_is_made_again(tiny: Path, tmp_path: Path, commands: list[str]) -> None:
    with Cache(tmp_path / "cache") as cache, sides(tiny, cache):
        pass
    with sqlite3.connect(tmp_path / "cache" / FILE) as connection:
        connection.execute("update entries set value = substr(value, 1, length(value) / 2)")
    commands.clear()
    with Cache(tmp_path / "cache") as cache, sides(tiny, cache) as compiled_sides:
        assert names(compiled_sides) == []
    assert "compile base" in commands


def test_no_secret_is_kept(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = (
        "tiny: {target: prod, outputs: {prod: {type: duckdb, path: tiny.duckdb, schema: prod, "
        "settings: {s3_secret_access_key: written-into-the-profile, "
        "s3_session_token: \"{{ env_var('DBT_ENV_SECRET_TOKEN') }}\"}}}}"
    )
    write(tiny, {"profiles.yml": profile})
    commit(tiny)
    monkeypatch.setenv("DBT_ENV_SECRET_TOKEN", "of-the-environment")
    with Cache(tmp_path / "cache") as cache:
        with sides(tiny, cache) as compiled_sides:
            assert names(compiled_sides) == []
        kept = kept_values(cache)
    assert b"big_orders" in kept  # base is there
    assert b"written-into-the-profile" not in kept
    assert b"of-the-environment" not in kept


# --- parsing ---------------------------------------------------------------------------------------


@pytest.fixture
def parsed_anew(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files dbt reads anew, each time it parses something."""
    from dbt.parser.manifest import ManifestLoader

    counts: list[int] = []
    parse = ManifestLoader.parse_project

    def noted(self: Any, project: Any, files: Any, *more: Any, **named: Any) -> Any:
        counts.append(sum(len(names) for names in files.values()))
        return parse(self, project, files, *more, **named)

    monkeypatch.setattr(ManifestLoader, "parse_project", noted)
    return counts


def test_head_is_parsed_from_what_was_parsed_before(
    tiny: Path, tmp_path: Path, parsed_anew: list[int]
) -> None:
    assert dbt(tiny, "parse", "--target", "prod")
    own = tiny / "target" / "partial_parse.msgpack"
    before = own.read_bytes()
    write(tiny, {"models/stg_orders.sql": STG})

    def parsed_files(cache: Cache | None) -> list[int]:
        parsed_anew.clear()
        with sides(tiny, cache, ref="HEAD"):
            pass
        return parsed_anew

    assert parsed_files(None)[0] == 2  # the edited model, and the YAML that describes it
    assert own.read_bytes() == before
    with Cache(tmp_path / "cache") as cache:
        parsed_files(cache)
        own.unlink()
        assert parsed_files(cache) == []
        write(tiny, {"models/stg_orders.sql": STG + " where true"})
        assert set(parsed_files(cache)) == {2}


def test_yaml_of_the_same_time_is_read_again(tiny: Path) -> None:
    """dbt takes a YAML file for unread since, if it was written when the one that it read was."""
    assert dbt(tiny, "parse", "--target", "prod")
    file = tiny / "models" / "models.yml"
    written = file.stat()
    file.write_text(
        file.read_text().replace("data_tests: [unique, not_null]", "data_tests: [unique]")
    )
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
    with sides(tiny, None, ref="HEAD") as compiled_sides:
        tests = {node.name for node in compiled_sides.head.of_type("test")}
    assert "not_null_stg_orders_order_id" not in tests


# --- without a warehouse ---------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [False, True])
def test_without_a_connection_what_asks_is_compared_by_its_code(
    tiny: Path, tmp_path: Path, commands: list[str], cached: bool
) -> None:
    write(tiny, {"profiles.yml": UNREACHABLE})
    tested = "models: [{name: pivoted, columns: [{name: customer, data_tests: [not_null]}]}]"
    write(tiny, {"models/pivoted.yml": tested})
    commit(tiny)
    with Cache(tmp_path / "cache") as cache:
        kept = cache if cached else None
        for _ in range(2):
            with sides(tiny, kept, target=None) as compiled_sides:
                assert names(compiled_sides) == []
                (note,) = compiled_sides.notes
                assert note.startswith("dbt cannot connect (IO Error: Cannot open file")
                assert note.endswith(
                    "1 node that asks the warehouse while dbt compiles is compared by its code "
                    "(pivoted)"
                )
                for side in (compiled_sides.base, compiled_sides.head):
                    assert [node.name for node in side.uncompiled()] == ["pivoted"]
        write(tiny, {"models/big_orders.sql": "select 1 as amount, 2 as order_id"})
        with sides(tiny, kept, target=None) as compiled_sides:
            assert names(compiled_sides) == ["not_null_big_orders_amount"]
        git(tiny, "checkout", "-q", ".")
        macros = tiny / "macros" / "macros.sql"
        macros.write_text(macros.read_text().replace("order by 1", "order by 1 desc"))
        with sides(tiny, kept, target=None) as compiled_sides:
            assert names(compiled_sides) == ["not_null_pivoted_customer"]
        git(tiny, "checkout", "-q", ".")
        # What it may query counts, too.
        write(tiny, {"models/stg_orders.sql": STG})
        with sides(tiny, kept, target=None) as compiled_sides:
            assert "not_null_pivoted_customer" in names(compiled_sides)
            assert "unique_stg_orders_order_id" not in names(compiled_sides)


def test_nothing_of_a_command_that_could_not_connect_goes_on(
    tiny: Path, commands: list[str]
) -> None:
    """Else its threads ask for the next nodes, and dbt's next command fails where it closes what they open."""
    write(tiny, {"profiles.yml": UNREACHABLE.replace("path:", "threads: 4, path:")})
    asking = (tiny / "models" / "pivoted.sql").read_text()
    write(tiny, {f"models/pivoted_{n}.sql": asking for n in range(20)})
    commit(tiny)
    with sides(tiny, None, target=None) as compiled_sides:
        assert [thread.name for thread in threading.enumerate() if "worker" in thread.name] == []
        (note,) = compiled_sides.notes
        assert "Cannot open file" in note
        assert "): 21 nodes that ask the warehouse while dbt compiles" in note


def test_with_a_state_too_what_asks_and_cannot_is_named(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tiny / "models" / "pivoted.sql"
    model.write_text(model.read_text().replace("sum(", "max("))
    write(
        tiny, {"models/big_orders.sql": "select 1 as order_id, amount from {{ ref('stg_orders') }}"}
    )
    write(tiny, {"models/above.sql": "select amount from {{ ref('big_orders') }} where amount > 1"})
    write(tiny, {"profiles.yml": UNREACHABLE})
    assert dbt(tiny, "parse")
    arguments = ("select", "--state", "../state", "--format", "json", "--verbose")
    code, out, err = ripple(monkeypatch, capsys, *arguments)
    assert code == 0, err
    assert err.count("dbt cannot connect (IO Error: Cannot open file") == 1
    assert "compared by its code (pivoted)" in err
    assert "10 nodes compiled as for base: nothing differs" in err
    # What is edited and asks nothing, and what reads it, are compiled: they would be named.
    assert not {"big_orders", "above"} & {*re.findall(r"\w+", err)}
    selected = json.loads(out)
    assert [test["name"] for test in selected["tests"]] == ["not_null_big_orders_amount"]
    assert selected["models"] == ["model.tiny.above", "model.tiny.big_orders", "model.tiny.pivoted"]


def test_what_asks_nothing_needs_no_connection(tiny: Path, commands: list[str]) -> None:
    """Nor does `is_incremental()`, which a full refresh answers."""
    write(tiny, {"profiles.yml": UNREACHABLE})
    (tiny / "models" / "pivoted.sql").unlink()
    commit(tiny)
    with sides(tiny, None, target=None) as compiled_sides:
        assert names(compiled_sides) == []
        assert compiled_sides.notes == []
        assert not compiled_sides.base.uncompiled()
    assert commands == ["parse head", "parse base", "compile base"]
    # A model that forbids a full refresh asks whether it is there.
    model = tiny / "models" / "inc_orders.sql"
    model.write_text(
        model.read_text().replace("incremental',", "incremental', full_refresh=false,")
    )
    commit(tiny)
    with sides(tiny, None, target=None) as compiled_sides:
        assert names(compiled_sides) == []
        assert [node.name for node in compiled_sides.base.uncompiled()] == ["inc_orders"]


def test_another_error_is_no_missing_connection(tiny: Path, commands: list[str]) -> None:
    write(
        tiny,
        {
            "models/pivoted.sql": "select {% if execute %}{{ run_query('select no_such_column') }}{% endif %}"
        },
    )
    commit(tiny)
    with pytest.raises(RippleError, match="no_such_column"), sides(tiny, None):
        pass
    assert commands[-3:] == ["debug base", "parse base", "compile base"]


def test_a_missing_environment_variable_of_the_profile_is_one_line(tiny: Path) -> None:
    profile = (
        "tiny: {target: dev, outputs: {dev: {type: duckdb, path: \"{{ env_var('DB_PATH') }}\"}}}"
    )
    write(tiny, {"profiles.yml": profile})
    with pytest.raises(RippleError) as raised, sides(tiny, None, target=None):
        pass
    assert "DB_PATH" in str(raised.value)
    assert "any value" in str(raised.value)
    assert "\n" not in str(raised.value)
