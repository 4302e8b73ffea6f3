"""`--base-ref`: both sides compiled by a real dbt, and everything of the user's as it was."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tiny_project import commit, dbt, fingerprint, git, write

from dbt_ripple.dbt_runner.base_ref import CompiledSides, both_sides, worktree
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.selection.select import select
from dbt_ripple.tuning import interrupted_by_term

pytestmark = pytest.mark.slow
STG = "select id as order_id, customer, amount * 2 as amount, status from {{ ref('raw_orders') }}"


@contextmanager
def sides(project: Path, ref: str = "main", target: str = "prod") -> Iterator[CompiledSides]:
    with both_sides(project, ref, DbtOptions(target=target)) as compiled_sides:
        yield compiled_sides


def names(selection: CompiledSides) -> list[str]:
    return sorted(test.name for test in select(selection.base, selection.head).tests)


def left_behind() -> list[str]:
    return sorted(path.name for path in Path(tempfile.gettempdir()).glob("dbt-ripple-*"))


@pytest.fixture(autouse=True)
def nothing_stays(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A folder of its own: other runs on this machine leave theirs meanwhile.
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    before = left_behind()
    yield
    assert left_behind() == before
    assert git(tiny, "worktree", "list").count("\n") == 0
    assert not (tiny / ".git" / "worktrees").exists()


def test_only_what_was_edited_is_compiled_and_nothing_of_the_users_changes(tiny: Path) -> None:
    dbt(tiny, "ls")  # a target folder and logs of their own
    write(tiny, {"models/stashed.sql": "select 1 as a"})
    git(tiny, "stash", "-u", "-q")
    write(tiny, {"models/staged.sql": "select 2 as b", "notes.txt": "not for git"})
    git(tiny, "add", "models/staged.sql")
    write(tiny, {"models/stg_orders.sql": STG})
    before = fingerprint(tiny)

    with sides(tiny) as compiled_sides:
        assert {u: str(why) for u, why in compiled_sides.taken.left_to_compile.items()} == {
            "model.tiny.staged": "base does not have it",
            "model.tiny.stg_orders": "its code changed",
        }
        assert len(compiled_sides.taken.taken) == 11
        assert not compiled_sides.base.uncompiled() and not compiled_sides.head.uncompiled()
        # What introspects found the warehouse of the checkout, on both sides.
        for side in (compiled_sides.base, compiled_sides.head):
            assert "as paid" in (side.nodes["model.tiny.pivoted"].compiled_code or "")
        assert names(compiled_sides) == [
            "not_null_big_orders_amount",
            "not_null_fct_customers_total",
        ]

    assert fingerprint(tiny) == before


def test_vars_count_and_incremental_models_are_asked_the_same_question(tiny: Path) -> None:
    project = tiny / "dbt_project.yml"
    project.write_text(project.read_text().replace("cutoff: 10", "cutoff: 15"))
    # Built under its old name only: under the new one it would be a first run.
    model = tiny / "models" / "inc_orders.sql"
    model.write_text(model.read_text().replace("incremental',", "incremental', alias='inc_2',"))
    with sides(tiny) as compiled_sides:
        assert "`var`" in str(compiled_sides.taken.left_to_compile["model.tiny.big_orders"])
        assert "15" in (compiled_sides.head.nodes["model.tiny.big_orders"].compiled_code or "")
        texts = [
            side.nodes["model.tiny.inc_orders"].compiled_code
            for side in (compiled_sides.base, compiled_sides.head)
        ]
        assert "max(order_id)" not in str(texts)
        # Under another name its rows begin anew: they may be others than those that were kept.
        assert names(compiled_sides) == ["not_null_big_orders_amount", "not_null_inc_orders_status"]


def test_a_var_counts_in_the_branch_that_is_not_compiled(tiny: Path) -> None:
    model = tiny / "models" / "inc_orders.sql"
    model.write_text(
        model.read_text().replace("where order_id", "where {{ var('cutoff') }} > 1 and order_id")
    )
    commit(tiny)
    with sides(tiny) as compiled_sides:
        assert names(compiled_sides) == []
    project = tiny / "dbt_project.yml"
    project.write_text(project.read_text().replace("cutoff: 10", "cutoff: 15"))
    with sides(tiny) as compiled_sides:
        assert (compiled_sides.base.variables, compiled_sides.head.variables) == (
            {"cutoff": "[10]"},
            {"cutoff": "[15]"},
        )
        assert names(compiled_sides) == ["not_null_big_orders_amount", "not_null_inc_orders_status"]


def test_a_project_in_a_folder_with_a_package_beside_it(tiny: Path, tmp_path: Path) -> None:
    repository = tmp_path / "all"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    project = repository / "dbt" / "tiny"
    project.parent.mkdir()
    tiny_files = {
        str(path.relative_to(tiny)): path.read_text()
        for path in tiny.rglob("*.*")
        if path.suffix in {".sql", ".yml", ".csv"} and ".git" not in path.parts
    }
    write(project, tiny_files | {"packages.yml": "packages: [{local: ../package}]"})
    write(repository / ".", {".gitignore": "target/\nlogs/\ndbt_packages/\npackage-lock.yml\n"})
    total = "{% macro total(column) %}sum({{ column }}){% endmacro %}"
    write(
        repository / "dbt" / "package",
        {"dbt_project.yml": "name: package\nversion: 1.0.0", "macros/t.sql": total},
    )
    macros = project / "macros" / "macros.sql"
    macros.write_text(macros.read_text().replace(total, ""))
    model = project / "models" / "fct_customers.sql"
    model.write_text(model.read_text().replace("total('", "package.total('"))
    (project / "models" / "pivoted.sql").unlink()
    commit(repository)
    assert dbt(project, "deps")

    write(repository / "dbt" / "package", {"macros/t.sql": total.replace("sum", "max")})
    before = fingerprint(repository)
    with both_sides(project, "HEAD", DbtOptions(profiles_dir=project)) as compiled_sides:
        assert list(map(str, compiled_sides.taken.left_to_compile.values())) == [
            "macro total changed"
        ]
        assert list(compiled_sides.taken.left_to_compile) == ["model.tiny.fct_customers"]
        texts = [
            side.nodes["model.tiny.fct_customers"].compiled_code or ""
            for side in (compiled_sides.base, compiled_sides.head)
        ]
        assert ["sum(amount)" in texts[0], "max(amount)" in texts[1]] == [True, True]
    assert fingerprint(repository) == before

    # Other packages here than there: base gets its own by `dbt deps`.
    write(project, {"packages.yml": "packages: [{local: ../package}]  # as before\n"})
    before = fingerprint(repository)
    with both_sides(project, "HEAD", DbtOptions(profiles_dir=project, threads=2)) as compiled_sides:
        compiled = compiled_sides.base.nodes["model.tiny.fct_customers"].compiled_code or ""
        assert "sum(amount)" in compiled
    assert fingerprint(repository) == before

    # A var that the package itself sets.
    package = repository / "dbt" / "package"
    asks = "{{ config(post_hook=\"select {{ var('limit') }}\") }} select {{ var('limit') }} as m"
    file = "name: package\nversion: 1.0.0\nvars: {limit: 1}"
    write(package, {"models/m.sql": asks, "dbt_project.yml": file})
    commit(repository)
    write(package, {"dbt_project.yml": file.replace("1}", "2}")})
    with both_sides(project, "HEAD", DbtOptions(profiles_dir=project)) as compiled_sides:
        left = compiled_sides.taken.left_to_compile
        assert str(left["model.package.m"]).startswith("it reads `var`")
        assert "2 as m" in (compiled_sides.head.nodes["model.package.m"].compiled_code or "")
        assert compiled_sides.head.variables == {"limit": "[('package', 2)]"}


def test_what_only_the_files_of_both_sides_tell_counts(tiny: Path) -> None:
    reads = "select order_id from read_csv(['data/none.csv', 'data/paid*.csv'])"
    tested = "models: [{name: paid, columns: [{name: order_id, data_tests: [not_null]}]}]"
    files = {"models/paid.sql": reads, "models/paid.yml": tested, "data/paid.csv": "order_id\n1\n"}
    write(tiny, files)
    commit(tiny)
    with sides(tiny) as compiled_sides:
        assert names(compiled_sides) == []
        assert not select(compiled_sides.base, compiled_sides.head).notes[1:]
    write(tiny, {"data/paid.csv": "order_id\n2\n"})
    with sides(tiny) as compiled_sides:
        assert names(compiled_sides) == ["not_null_paid_order_id"]

    write(tiny, {"data/paid.csv": "order_id\n1\n", "data/paid_2.csv": "order_id\n2\n"})
    with sides(tiny) as compiled_sides:
        assert names(compiled_sides) == [
            "not_null_paid_order_id"
        ]  # git has not been told of it yet
    write(tiny, {".gitignore": (tiny / ".gitignore").read_text() + "paid_2.csv\n"})
    with sides(tiny) as compiled_sides:
        assert names(compiled_sides) == []
    (tiny / "data" / "paid_2.csv").unlink()

    flags = "\nflags: {warn_error_options: {error: [LogTestResult]}}\n"
    write(tiny, {"dbt_project.yml": (tiny / "dbt_project.yml").read_text() + flags})
    with sides(tiny) as compiled_sides:
        every = [node.name for node in compiled_sides.head.of_type("test")]
        assert names(compiled_sides) == sorted(every)


def test_a_module_on_the_path_that_a_python_model_imports_counts(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tiny / "lib"))
    monkeypatch.chdir(tiny)
    files = {
        "models/m.py": "import os, rates\ndef model(dbt, session):\n    return session.query(f'select {rates.TAX} as a')\n",
        "models/m.yml": "models: [{name: m, columns: [{name: a, data_tests: [not_null]}]}]",
        "lib/rates.py": "from taxes.vat import TAX\n",
        "lib/taxes/vat.py": "TAX = 19\n",
        "lib/unread.py": "x = 1\n",
    }
    write(tiny, files)
    commit(tiny)
    write(tiny, {"lib/unread.py": "x = 2\n"})
    with sides(tiny) as compiled_sides:
        assert names(compiled_sides) == []
    write(tiny, {"lib/taxes/vat.py": "TAX = 7\n"})  # which only another module imports
    with sides(tiny) as compiled_sides:
        assert names(compiled_sides) == ["not_null_m_a"]


def test_commits_the_branch_lacks_are_reported(tiny: Path, tmp_path: Path) -> None:
    git(tiny, "checkout", "-q", "-b", "ahead")
    write(tiny, {"models/stg_orders.sql": STG})
    commit(tiny)
    git(tiny, "checkout", "-q", "main")
    with worktree(tiny, "ahead", tmp_path / "there") as (folder, notes):
        assert (folder / "models" / "stg_orders.sql").read_text() == STG
        assert notes[0].startswith("ahead has 1 commits that are not in this branch")
    with worktree(tiny, "main", tmp_path / "there") as (_, notes):
        assert notes == []


def test_what_the_user_can_get_wrong_is_one_line(tiny: Path, tmp_path: Path) -> None:
    before = fingerprint(tiny)
    for project, ref, message in (
        (tiny, "no-such", "git knows no commit 'no-such' here"),
        (tmp_path / "state", "main", "no dbt_project.yml in this folder"),
    ):
        with pytest.raises(RippleError, match=message), sides(project, ref):
            pass
    outside = tmp_path / "outside"
    write(outside, {"dbt_project.yml": "name: x"})
    with pytest.raises(RippleError, match="not in a git repository"), sides(outside):
        pass
    assert fingerprint(tiny) == before


def test_a_ref_without_the_project_is_one_line(tiny: Path) -> None:
    git(tiny, "checkout", "-q", "--orphan", "empty")
    git(tiny, "rm", "-r", "-q", "--cached", ".")
    git(tiny, "commit", "-q", "--allow-empty", "-m", "nothing")
    message = r"no dbt project at empty: it has no dbt_project\.yml"
    with pytest.raises(RippleError, match=message), sides(tiny, "empty"):
        pass


def test_dbts_own_message_is_passed_on_in_one_line(
    tiny: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": "select {{ no_such_macro() }}"})
    broken = commit(tiny)
    write(tiny, {"models/stg_orders.sql": STG})
    before = fingerprint(tiny)
    message = "'no_such_macro' is undefined"
    with pytest.raises(RippleError, match=message) as raised, sides(tiny, broken):
        pass
    assert "\n" not in str(raised.value)
    assert "dbt compile" in str(raised.value)
    assert capfd.readouterr().err == ""
    assert fingerprint(tiny) == before


@pytest.fixture
def interrupts() -> Iterator[None]:
    """An interrupt is heard: where the tests run in the background, the shell has it ignored."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("interrupts")
def test_base_equal_to_head_selects_nothing_and_an_interrupt_leaves_nothing(tiny: Path) -> None:
    before = fingerprint(tiny)
    with pytest.raises(KeyboardInterrupt), sides(tiny) as compiled_sides:
        assert names(compiled_sides) == []
        assert list(compiled_sides.taken.left_to_compile) == []
        assert compiled_sides.notes == []
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it went on")
    assert fingerprint(tiny) == before


def test_being_terminated_leaves_nothing(tiny: Path, tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises(SystemExit) as ended,
        interrupted_by_term(),
        worktree(tiny, "main", tmp_path / "there") as (folder, _),
    ):
        assert (folder / "dbt_project.yml").is_file()
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it went on")
    assert ended.value.code == 128 + signal.SIGTERM
    assert not (tmp_path / "there").exists()
    assert signal.getsignal(signal.SIGTERM) == handler
