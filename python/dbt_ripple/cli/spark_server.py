"""The options that say which Spark the lineage tables are on, and the way to it.

Where ``--master`` or ``--remote`` is given it is a session; else what the profile says: dbt's own
connection to a server, or, with `method: session`, a session of this process.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from dbt_ripple.cli.options import connection_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.output import warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_ripple.graph.query_cache import LowerMany
    from dbt_ripple.spark.server import Server

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OF_DBT: Final = ("profiles_dir", "profile", "target", "variables")


@dataclass(frozen=True)
class SparkOptions:
    """What ``--master``, ``--remote``, ``--stage`` and the options of dbt's connection say."""

    master: str | None = None
    remote: str | None = None
    stage: str | None = None
    dbt: DbtOptions = field(default_factory=DbtOptions)

    @property
    def given(self) -> bool:
        """Whether a Spark is given, by an option, by SPARK_REMOTE or by spark-submit."""
        started = os.environ.get("SPARK_REMOTE") or os.environ.get("PYSPARK_GATEWAY_PORT")
        return bool(self.master or self.remote or started)


def with_spark_options(command: _Command) -> _Command:
    """Add ``--master`` and ``--remote``, and those of dbt's connection; passed on as ``where``.

    ``--stage`` is taken with them where a command has it.
    """

    @functools.wraps(command)
    def with_where(
        *args: Any, master: str | None, remote: str | None, stage: str | None = None, **more: Any
    ) -> Any:
        dbt = DbtOptions(**{name: more.pop(name) for name in _OF_DBT})
        return command(*args, where=SparkOptions(master, remote, stage, dbt), **more)

    remote = click.option(
        "--remote",
        metavar="URL",
        # The variable is read where the session is made: it gives way to --master.
        help="A Spark Connect server, for example sc://host:15002.  [env var: SPARK_REMOTE]",
    )
    master = click.option(
        "--master",
        metavar="URL",
        help="A Spark master to connect to, for example spark://host:7077 or yarn.  [default: dbt's own "
        "connection; with `method: session` an embedded Spark, as SPARK_CONF_DIR configures it]",
    )
    return cast("_Command", master(remote(connection_options(with_where))))


def stage_option(command: _Command) -> _Command:
    """Add ``--stage``."""
    return click.option(
        "--stage",
        metavar="URL",
        help="A folder that the server reads too, for what is too much for one statement: a path, a URL of s3, "
        "gs, abfss or hdfs, or /Volumes/... of Unity Catalog. Only through dbt's own connection.",
    )(command)


def open_session(
    master: str | None, remote: str | None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """The Spark session to work on, as `spark.session.get_session` gives it."""
    from dbt_ripple.spark.session import get_session

    with terminal.progress("starting Spark"):
        return get_session(master, remote, config=config, report=warn)


class Way:
    """The way to the Spark that the tables are on.

    Args:
        where: what the options say.
        adapter: gives dbt's adapter where its connection is the way; None where a session is.
        config: settings of a session that is started here.

    Raises:
        RippleError: there is a stage, and the way is a session.
    """

    def __init__(
        self,
        where: SparkOptions,
        adapter: Callable[[], Any] | None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self._where = where
        self._adapter = adapter
        self._config = config
        self._opened: SparkSession | None = None
        if where.stage and adapter is None:
            raise RippleError(
                "rows are put there for dbt's own connection only, and this load goes through a Spark session",
                f"--stage {where.stage}",
                "leave --stage out",
            )

    @classmethod
    def of(cls, where: SparkOptions, project_dir: Path) -> Way:
        """The way for a command that does not run dbt: the profile is read where no Spark is given.

        Raises:
            RippleError: dbt cannot read the profile, or the server that it names does not answer.
        """
        from dbt_ripple.dbt_runner.profile import adapter_of

        adapter = None if where.given else adapter_of(project_dir, where.dbt)
        way = cls(where, None if adapter is None else lambda: adapter)
        if adapter is not None:
            way._check(adapter)
        return way

    def _check(self, adapter: Any) -> None:
        """Connect once, before anything is analysed."""
        try:
            with terminal.progress("connecting"), self.server() as server:
                server.rows("select 1 as one")
        except RippleError:
            raise
        except Exception as error:  # of dbt, by what it connects through
            raise RippleError(
                f"dbt's connection to {adapter.config.credentials.type} does not work ({error})",
                "profiles.yml",
                "`dbt debug` tells more; --remote or --master name another Spark",
            ) from error

    def start(self) -> None:
        """Start the session, where one is the way: dbt, in the same process, then finds it."""
        if self._adapter is None:
            self.session()

    def session(self) -> SparkSession:
        """The session, started when it is asked for first."""
        if self._opened is None:
            self._opened = open_session(self._where.master, self._where.remote, self._config)
        return self._opened

    @contextmanager
    def server(self) -> Iterator[Server]:
        """The Spark, until the end; connections are closed then, a session is not."""
        from dbt_ripple.spark.server import SessionServer

        if self._adapter is None:
            yield SessionServer(self.session())
            return
        from dbt_ripple.dbt_runner.profile import server_of

        with closing(server_of(self._adapter(), self._where.stage)) as server:
            yield server

    def lower_many(self, threads: int | None) -> LowerMany | None:
        """How many queries are lowered: on a cluster's executors where there is a session, else on cores here."""
        from dbt_ripple.graph.process_pool import cores, in_processes
        from dbt_ripple.spark.executors import on_executors

        here = in_processes(threads or cores())
        return here if self._adapter is not None else on_executors(self.session, here, warn)
