"""What a terminal gets and a pipe does not; `--quiet`; subfolders; what a shell completes."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from cli_shell import FIXTURE, Shell
from hostile import unsafe
from two_sides import FROM_RAW, NOT_NEGATIVE, STG, V2, Sides

from dbt_ripple.cli import main
from dbt_ripple.rendering import terminal as screen

COMMAND = "from dbt_ripple.cli import main; main()"


def on_terminal(*arguments: str, columns: int = 80, cwd: Path | None = None, **env: str) -> str:
    """What a terminal of so many columns shows of a command."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    settings = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env={**settings, "TERM": "xterm", **env},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    process.wait()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


TRACE = ("trace", "raw.orders", "--target-path", str(FIXTURE))


def test_colours_are_for_terminals_that_want_them() -> None:
    coloured = on_terminal(*TRACE)
    assert "\x1b[36mDBT_MODEL\x1b[0m stg_orders" in coloured
    for without in (
        on_terminal(*TRACE, "--no-color"),
        on_terminal("--no-color", *TRACE),
        on_terminal(*TRACE, NO_COLOR="1"),
        on_terminal(*TRACE, TERM="dumb"),
    ):
        assert without == plain(coloured)
    assert on_terminal(*TRACE, NO_COLOR="") == coloured  # as no-color.org has it
    in_pipe = subprocess.run(
        [sys.executable, "-c", COMMAND, *TRACE], capture_output=True, text=True, check=True
    )
    assert in_pipe.stdout == plain(coloured)
    assert in_pipe.stderr == ""


LONG = f"a_column_with_quite_a_name_{'_and_more' * 9}"


@pytest.fixture
def long_names(sides: Sides) -> Sides:
    """A change of a column with a long name, read through a long chain of models."""
    for side, made in (("target", "amount * 2"), ("state", "amount")):
        sides.write_sql(STG, f"{FROM_RAW.replace('amount', f'{made} as {LONG}', 1)}", side)
        sides.write_sql(V2, f"select customer_id, {LONG} as total from shop.stg_orders", side)
        sides.write_sql(NOT_NEGATIVE, f"select * from shop.stg_orders where {LONG} < 0", side)
    return sides


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize(
    "command",
    [
        ("trace", f"stg_orders.{LONG}", "-d", "both"),
        ("explain", "no_negative_amount", "--state", "state"),
    ],
)
def test_lines_fit_into_a_terminal_and_are_whole_in_a_pipe(
    long_names: Sides, command: tuple[str, ...], columns: int
) -> None:
    shell = long_names.shell
    in_pipe = shell(*command).out
    shown = plain(on_terminal(*command, "--quiet", columns=columns, cwd=shell.folder))
    assert max(map(len, shown.splitlines())) <= columns < max(map(len, in_pipe.splitlines()))
    assert LONG in in_pipe and "…" not in in_pipe
    if command[0] == "explain":  # wrapped: nothing is lost
        assert "".join(shown.split()) == "".join(in_pipe.split())
    else:  # cut: a line a line
        assert len(shown.splitlines()) == len(in_pipe.splitlines())
        assert "and_more" in shown.splitlines()[1]


def test_machines_get_whole_lines_on_a_terminal_too(long_names: Sides) -> None:
    shell = long_names.shell
    for style in ("json", "markdown", "mermaid"):
        # A slow machine says how far it is, on the same terminal.
        command = ("trace", f"stg_orders.{LONG}", "--format", style, "--quiet")
        assert on_terminal(*command, columns=40, cwd=shell.folder) == shell(*command).out


def test_quiet_says_the_answer_and_errors_only(sides: Sides) -> None:
    sides.write_sql(STG, f"{FROM_RAW} where amount > 0")
    loud = sides("select", "--critical", "tier9")
    assert "tier9" in loud.err
    for quiet in (sides("select", "--critical", "tier9", "-q"), sides("select", "--quiet")):
        assert (quiet.out, quiet.err) == (loud.out, "")
    assert "no such folder" in sides.shell.refused("-q", "select", "--state", "nowhere")
    assert sides("select", "--critical", "tier9").err == loud.err  # it does not stay quiet


# --- progress --------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(screen, "_TICK", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    screen.begin()
    return Terminal()


def eventually(terminal: Terminal, text: str) -> bool:
    until = time.monotonic() + 10
    while text not in terminal.getvalue() and time.monotonic() < until:
        time.sleep(0.01)
    assert text in terminal.getvalue()
    return True


def test_progress_is_one_line_that_goes_away(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(screen, "PATIENCE", 0.0)
    threads = threading.active_count()
    with screen.progress("analysing \x1b[2J"):
        assert eventually(terminal, "\rdbt-ripple: analysing \\x1b[2J (0 s)\x1b[K")
        with screen.progress("dbt compile of base") as rename:
            assert eventually(terminal, "dbt compile of base (")
            rename("something else")
            assert eventually(terminal, "something else (")
            screen.giving_way(terminal).write("what dbt says\n")
            assert "\r\x1b[Kwhat dbt says\n" in terminal.getvalue()
            assert eventually(terminal, "says\n\rdbt-ripple: something else")
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert "\n" not in terminal.getvalue().replace("what dbt says\n", "")
    time.sleep(0.1)
    assert threading.active_count() == threads


def test_what_is_quick_has_no_progress(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal)
    with screen.progress("reading"):
        time.sleep(0.1)
    assert terminal.getvalue() == ""


def test_no_progress_where_nobody_looks(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    monkeypatch.setattr(screen, "PATIENCE", 0.0)
    monkeypatch.setattr(screen, "_TICK", 0.001)
    assert shell("trace", "raw.orders").err == ""
    made = Terminal()
    for variables, arguments in (({"TERM": "dumb"}, ()), ({"TERM": "xterm"}, ("--quiet",))):
        monkeypatch.setattr("sys.stderr", made)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.argv", ["dbt-ripple", "analyze", "--no-cache", *arguments])
        with pytest.raises(SystemExit):
            main()
    assert made.getvalue() == ""


# --- where the project is --------------------------------------------------------------------------


def test_every_subfolder_of_a_project_is_the_project(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = sides.shell
    (shell.folder / "dbt_project.yml").write_text("name: shop\n")
    commands = (("trace", "stg_orders"), ("impact", "stg_orders", "--drop", "amount"))
    above = [shell(*command).out for command in commands]
    too_old = shell.refused("select", "--state", "state")
    assert "is older than the project" in too_old
    inside = shell.folder / "models" / "staging"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert [shell(*command).out for command in commands] == above
    for state in ("state", "../../state", str(shell.folder / "state")):
        assert "is older than the project" in shell.refused("select", "--state", state)
    # Where the project is said, that is where it is.
    monkeypatch.setenv("DBT_PROJECT_DIR", str(inside))
    assert "no such folder" in shell.refused(*commands[0])
    assert shell(*commands[0], "--project-dir", str(shell.folder)).out == above[0]


def test_outside_of_every_project_it_is_reported(shell: Shell) -> None:
    assert "no such folder" in shell.refused("trace", "x", "--target-path", "nowhere")


# --- completion ------------------------------------------------------------------------------------


def completed(shell: Shell, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    monkeypatch.setenv("_DBT_RIPPLE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("dbt-ripple", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    done = shell()
    assert done.err == "" and done.code == 0
    return [line.removeprefix("plain,") for line in done.out.splitlines() if line]


def test_names_are_completed(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = sides.shell

    def words(*typed: str) -> list[str]:
        return completed(shell, monkeypatch, *typed)

    assert words("tr") == ["trace"]
    assert "--no-color" in words("trace", "--no")
    assert words("trace", "stg") == ["stg_orders"]
    assert words("trace", "dim_c") == ["dim_customers.v1", "dim_customers.v2"]
    assert words("trace", "RAW.o") == ["raw.orders"]
    assert words("trace", "stg_orders.order") == ["stg_orders.order_id", "stg_orders.ordered_at"]
    assert words("impact", "stg_orders", "--drop", "cust") == ["customer_id"]
    assert words("explain", "no_neg") == ["no_negative_amount"]
    assert words("explain", "stg") == ["stg_orders"]


def test_what_cannot_be_completed_is_not(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = sides.shell

    def hostile(manifest: dict[str, dict[str, dict[str, object]]]) -> None:
        node = manifest["nodes"][STG]
        for number, name in enumerate(("stg\nx", "stg x", "stg`x`", "stg\x1b[31m", "stg$(x)")):
            manifest["nodes"][f"model.shop.x{number}"] = {**node, "name": name}

    sides.edit(hostile)
    completions = completed(shell, monkeypatch, "trace", "stg")
    assert completions == ["stg_orders"] and not unsafe(completions[0])
    (shell.folder / "target" / "manifest.json").write_text("{")
    assert completed(shell, monkeypatch, "trace", "stg") == []


def test_completion_loads_little() -> None:
    heavy = "{'sqlglot', 'pyarrow', 'pyspark', 'dbt'}"
    code = (
        "import sys\nfrom dbt_ripple.cli import main\n"
        f"try: main()\nexcept SystemExit: pass\nassert not {heavy} & sys.modules.keys()"
    )
    typed = {
        "_DBT_RIPPLE_COMPLETE": "bash_complete",
        "COMP_WORDS": f"dbt-ripple trace --target-path {FIXTURE} stg",
        "COMP_CWORD": "4",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=os.environ | typed, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b"plain,stg_orders\n"


def test_python_runs_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dbt_ripple", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("dbt-ripple, version ")
