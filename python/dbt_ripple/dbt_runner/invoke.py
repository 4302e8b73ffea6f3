"""Calls dbt in this process: one way to call it, and a short text of what went wrong.

In one process dbt, the loader and a second dbt project share what is slow to open: the Spark
session of ``method: session``. A metastore allows only one at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

from dbt_ripple.artifacts.paths import artifacts_folder, text_of_file
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.output import warn

_WITHOUT_DEFAULT: Final = re.compile(r"""\benv_var\(\s*['"](\w+)['"]\s*\)""")
STAGE_BARS: Final = "spark.ui.showConsoleProgress"


@dataclass(frozen=True)
class DbtOptions:
    """How dbt is called: what its options of the same names mean.

    Attributes:
        variables: YAML, as ``--vars`` takes it.
        no_deps: whether base's packages may not be installed where they are others than head's.
    """

    profiles_dir: Path | None = None
    profile: str | None = None
    target: str | None = None
    variables: str | None = None
    threads: int | None = None
    no_deps: bool = False

    @classmethod
    def taken(cls, arguments: dict[str, Any]) -> DbtOptions:
        """Take what :func:`cli.options.connection_options` added out of a command's arguments."""
        names = ("profiles_dir", "profile", "target", "variables", "threads", "no_deps")
        return cls(**{name: arguments.pop(name) for name in names if name in arguments})

    def resolved(self, project_dir: Path) -> DbtOptions:
        """The same, with the folder of profiles.yml written out.

        It is where dbt would find it from here or, in a subfolder, from the project.
        """
        home = Path.home() / ".dbt"
        there = (f for f in (Path.cwd(), project_dir) if (f / "profiles.yml").exists())
        return replace(self, profiles_dir=(self.profiles_dir or next(there, home)).resolve())

    def arguments(self) -> list[str]:
        """As dbt's command line takes them."""
        return [
            argument
            for option, value in (
                # Resolved: some commands of dbt change into the project.
                ("--profiles-dir", self.profiles_dir and self.profiles_dir.resolve()),
                ("--profile", self.profile),
                ("--target", self.target),
                ("--vars", self.variables),
                ("--threads", self.threads),
            )
            if value is not None
            for argument in (option, str(value))
        ]


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for what dbt writes, removed in the end.

    Threads of a dbt that failed may still write into it: what of it cannot be removed is left there.
    """
    folder = Path(tempfile.mkdtemp(prefix="dbt-ripple-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Dbt:
    """dbt on one project, in this process, its lines on stderr and its files in one folder.

    Args:
        project_dir: the project, absolute.
        target_path: where its artifacts and logs go, absolute.
        options: how it is called.
        log_level: what dbt prints on stderr: ``error``, or ``none`` where the caller reports it in one line.
        side: ``base`` or ``head``, for the progress line.

    Raises:
        RippleError: dbt is not installed here.
    """

    def __init__(
        self,
        project_dir: Path,
        target_path: Path,
        options: DbtOptions,
        *,
        log_level: str = "error",
        side: str = "",
    ) -> None:
        try:
            with terminal.progress("importing dbt"):
                from dbt.cli.main import dbtRunner
        except ImportError as error:
            raise RippleError(
                "dbt is not installed in this Python",
                sys.prefix,
                "install it with the adapter of your warehouse: `pip install dbt-core dbt-ADAPTER`",
            ) from error
        # Spark's bars of stages, which it also sends into logs, if dbt is to start it.
        os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--conf {STAGE_BARS}=false pyspark-shell")
        self._invoke = dbtRunner().invoke
        self.project_dir = project_dir
        self.target_path = target_path
        self._options = options
        self._log_level = log_level
        self._side = side

    @property
    def log_file(self) -> Path:
        """Where dbt says everything."""
        return self.target_path / "logs" / "dbt.log"

    def on(self, manifest: Any, callbacks: Sequence[Callable[[Any], None]] = ()) -> Dbt:
        """The same dbt on a project it has parsed: it does not parse again.

        Args:
            manifest: what `parse` returned.
            callbacks: called with each of dbt's events, in the thread where it happens. dbt hangs if
                one of them raises.
        """
        from dbt.cli.main import dbtRunner

        other = copy(self)
        other._invoke = dbtRunner(manifest=manifest, callbacks=[*callbacks]).invoke
        return other

    def __call__(self, *command: str, target_path: Path | None = None, loud: bool = False) -> Any:
        """Run a dbt command and return its result.

        Args:
            command: the command and its own arguments.
            target_path: where its artifacts go, if not where the others' do.
            loud: whether dbt's lines are worth following one by one.

        Raises:
            RippleError: it failed.
        """
        result = self.attempt(*command, target_path=target_path, loud=loud)
        self.check(result, command)
        return result

    def parse(self, *, write: bool = True) -> Any:
        """Have dbt parse the project, and return its own manifest.

        Args:
            write: whether manifest.json is written, too, as dbt writes it.

        Raises:
            RippleError: it failed.
        """
        result = self.attempt("parse", "--no-write-json")
        self.check(result, ("parse",))
        manifest = result.result
        if write:
            self.target_path.mkdir(parents=True, exist_ok=True)
            (self.target_path / "manifest.json").write_text(in_json(manifest), encoding="utf-8")
        return manifest

    def check(self, result: Any, command: tuple[str, ...]) -> None:
        """Refuse to go on where a command failed.

        Raises:
            RippleError: it did.
        """
        if result.success:
            return
        reason = why(result)
        unset = self._unset_in_profile()
        if unset and ("profile" in reason or any(name in reason for name in unset)):
            raise RippleError(
                f"`dbt {short(command)}` failed ({reason}); {', '.join(unset)} of profiles.yml "
                f"{'is' if len(unset) == 1 else 'are'} not set",
                str(self.project_dir),
                "set it; where there are no secrets, as for a pull request from a fork, any value "
                "will do: what asks the warehouse is compared by its code",
            ) from result.exception
        raise RippleError(
            f"`dbt {short(command)}` failed ({reason})",
            str(self.project_dir),
            "mend that and try again"
            if self._log_level == "none" or not self.log_file.exists()
            else f"dbt's log has more: {self.log_file}",
        ) from result.exception

    def _unset_in_profile(self) -> list[str]:
        """The environment variables without which dbt cannot read profiles.yml."""
        folder = self._options.resolved(self.project_dir).profiles_dir
        text = (text_of_file(folder / "profiles.yml") if folder else None) or ""
        return [n for n in dict.fromkeys(_WITHOUT_DEFAULT.findall(text)) if n not in os.environ]

    def attempt(self, *command: str, target_path: Path | None = None, loud: bool = False) -> Any:
        """Run a dbt command and return its result, failed or not; arguments as in a call."""
        if command[0] in ("debug", "deps"):  # they take neither, and have no artifacts
            options, files = replace(self._options, threads=None), []
        else:
            options, files = self._options, ["--target-path", str(target_path or self.target_path)]
        if (self.project_dir / "profiles.yml").exists():
            options = options.resolved(self.project_dir)
        loud = loud and not terminal.is_quiet()
        arguments = [
            *([] if loud else ["--quiet"]),
            *(["--no-use-colors"] if terminal.without_colours() else []),
            *(["--log-level", "none"] if self._log_level == "none" else []),
            "--no-send-anonymous-usage-stats",  # writes a file beside profiles.yml
            "--log-path",
            str(self.log_file.parent),
            # To list all relations takes minutes in a large warehouse. What asks for one, still finds it.
            *(["--no-populate-cache"] if command[0] in ("compile", "docs") else []),
            *command,
            "--project-dir",
            str(self.project_dir),
            *options.arguments(),
            *files,
        ]
        # `dbt deps` changes into the project and does not come back.
        here = Path.cwd()
        try:
            with terminal.progress(self._step(command)):
                stream = terminal.giving_way(sys.stderr)
                with contextlib.redirect_stdout(stream):
                    result = self._invoke(arguments)
        finally:
            os.chdir(here)
        if isinstance(result.exception, KeyboardInterrupt | SystemExit):
            raise result.exception
        return result

    def _step(self, command: tuple[str, ...]) -> str:
        words = " ".join(command[: 2 if command[0] == "docs" else 1])
        return f"dbt {words} of {self._side}" if self._side else f"dbt {words}"


def in_json(manifest: Any) -> str:
    """What dbt writes as manifest.json: at once, and not piece by piece, which Python does more slowly."""
    from dbt_common.utils.encoding import JSONEncoder

    writable = manifest.writable_manifest()
    try:
        document = writable.to_dict(omit_none=False, context={"artifact": True})
    except TypeError:  # an older dbt, which knows no context
        document = writable.to_dict(omit_none=False)
    return json.dumps(document, cls=JSONEncoder)


def short(command: tuple[str, ...]) -> str:
    """A command as an error names it: without the ten thousand names it may end in."""
    return " ".join(command if len(command) < 8 else (*command[:6], "..."))


def failed_nodes(result: Any) -> list[Any]:
    """Dbt's results of the nodes in which a command failed."""
    return [
        result_of_node
        for result_of_node in getattr(result.result, "results", None) or ()
        if str(getattr(result_of_node, "status", "")) in {"error", "fail", "runtime error"}
    ]


def why(result: Any) -> str:
    """What a failed dbt command says of itself, short."""
    if result.exception is not None:
        said = shorten(str(result.exception), 300, placeholder=" ...")
        return said or type(result.exception).__name__
    failed = failed_nodes(result)
    if not failed:
        return "see its lines above"
    first = failed[0]
    name = getattr(getattr(first, "node", None), "name", "")
    more = f"; {len(failed) - 1} more" if len(failed) > 1 else ""
    return shorten(f"{first.status} in {name}: {first.message}", 300, placeholder=" ...") + more


_LIST: Final = ("ls", "--output", "json", "--output-keys", "unique_id")
_SPECS: Final = len(_LIST)


def chosen_by_dbt(
    project_dir: Path,
    target_path: Path | None,
    state: Path,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    options: DbtOptions,
) -> set[str]:
    """The unique_ids that dbt's own selection grammar selects.

    Raises:
        RippleError: dbt is not installed here, or refuses the selection.
    """
    arguments = list(_LIST)
    for option, specs in (("--select", selected), ("--exclude", excluded)):
        if specs:
            arguments += [option, *(word for spec in specs for word in spec.split())]
    arguments += ["--state", str(state.resolve())]
    # In a folder of its own: `dbt ls` overwrites manifest.json with one that is not compiled.
    with temporary_folder() as folder:
        kept = artifacts_folder(project_dir, target_path) / "partial_parse.msgpack"
        if kept.is_file():
            (folder / kept.name).write_bytes(kept.read_bytes())
        dbt = Dbt(project_dir.resolve(), folder, options, log_level="none")
        lines = dbt(*arguments).result or []
    if not lines:
        warn(f"dbt itself selects nothing by `{' '.join(arguments[_SPECS:-2])}`")
    try:
        return {json.loads(line)["unique_id"] for line in lines}
    except (ValueError, KeyError, TypeError):
        raise RippleError(
            "dbt lists nodes in a form that is not known", "--select", "upgrade dbt-ripple"
        ) from None
