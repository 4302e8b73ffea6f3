"""The Spark session everything runs on, and an embedded Spark that leaves nothing outside a folder.

dbt-spark's method ``session`` and the loader share one session: both ask for
``SparkSession.builder.enableHiveSupport().getOrCreate()`` in one process. What that session is
decided by where it runs:

* already there (spark-submit, a Databricks notebook, dbt in the same process): it is used;
* ``remote``: Spark Connect;
* ``master``: a cluster, driven from this process;
* none of these: embedded, configured as the user configured it (``SPARK_CONF_DIR``).

Spark retries an address that does not answer for minutes, so addresses are tried with a plain
socket first; every way to fail is one line (:class:`~dbt_ripple.errors.RippleError`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dbt_ripple.errors import RippleError
from dbt_ripple.spark.java import (
    Java,
    company_truststore,
    find_java,
    user_cache,
    write_atomically,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FileFormat = Literal["parquet", "delta", "iceberg"]
INSTALL_PYSPARK: Final = 'install it with `pip install "pyspark<4.4"`'
CONNECT_TIMEOUT: Final = 5.0
"""Seconds within which an address must take a connection."""
HANDSHAKE_TIMEOUT: Final = 20.0
"""Seconds within which a Spark Connect server must take part in the protocol's handshake."""

_DEFAULT_PORTS: Final = {"spark": 7077, "sc": 15002, "k8s": 443}

# One release line of each for each Spark they follow: (pyspark minor, Maven coordinates).
_DELTA: Final = {
    (3, 5): "io.delta:delta-spark_2.12:3.3.3",
    (4, 0): "io.delta:delta-spark_4.0_2.13:4.4.0",
    (4, 1): "io.delta:delta-spark_4.1_2.13:4.4.0",
    (4, 2): "io.delta:delta-spark_4.2_2.13:4.4.0",
}
_ICEBERG: Final = {
    (3, 5): "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
    (4, 0): "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    (4, 1): "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
# Spark's default resolvers hang where only Maven Central answers; this one names no address.
_IVY_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
# Spark's own warnings go to a file: on the terminal they would bury dbt's lines.
_LOG4J: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.append = false
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


@dataclass(frozen=True)
class LocalEnvironment:
    """An embedded Spark made ready by :func:`local_environment`.

    Attributes:
        java: the Java it will run on.
        folder: where everything it writes stays.
        variables: the environment variables that were set; another process that gets them runs on
            the same metastore (one at a time) and warehouse.
    """

    java: Java
    folder: Path
    variables: dict[str, str]


def local_environment(
    folder: Path, file_format: FileFormat = "parquet", *, short_lived: bool = False
) -> LocalEnvironment:
    """Make an embedded Spark ready whose metastore, warehouse and logs all stay in ``folder``.

    Sets ``JAVA_HOME`` and ``SPARK_CONF_DIR``; call it before the first session of the process. The
    next ``SparkSession.builder.enableHiveSupport().getOrCreate()``, dbt's or ours, is that Spark.

    Args:
        folder: made when missing. Its metastore and warehouse belong together: wipe both or none.
        file_format: what tables can be made of; ``delta`` and ``iceberg`` let Spark fetch their
            jars from Maven Central on first use (then kept in Ivy's cache).
        short_lived: whether it ends within minutes. Most of such a Spark's time goes into compiling
            Java; it then does that once and quickly, which costs a long-lived one speed. One thread
            collects its garbage.

    Returns:
        What was set up.

    Raises:
        RippleError: the folder cannot be written, there is no pyspark or no Java, or the installed
            Spark has no release of the file format.
    """
    version = _pyspark_version()
    folder = folder.resolve()
    options = [f"-Dderby.system.home={folder / 'metastore'}", f"-Djava.io.tmpdir={folder / 'tmp'}"]
    if short_lived:
        # With the quick compiler alone, Java sets less aside for code than Spark fills, and then stops compiling.
        options += ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC"]
    settings = _local_settings(folder)
    try:
        for name in ("metastore", "warehouse", "tmp", "conf"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        minimum, maximum = _java_range(version)
        java = find_java(minimum=minimum, maximum=maximum, cache=folder)
        if file_format != "parquet":
            settings |= _table_format_settings(file_format, version, folder)
            write_atomically(folder / "conf" / "resolver.xml", _IVY_SETTINGS.encode())
            options += company_truststore(folder / "conf") if java.bundled else []
        settings["spark.driver.extraJavaOptions"] = " ".join(map(_quote_option, options))
        log4j = _LOG4J.format(file=folder / "logs" / "spark.log")
        write_atomically(folder / "conf" / "log4j2.properties", log4j.encode())
        lines = [f"{key} {_escape_property(value)}\n" for key, value in settings.items()]
        write_atomically(folder / "conf" / "spark-defaults.conf", "".join(lines).encode())
    except OSError as error:
        raise RippleError(
            f"cannot be written ({error.strerror})",
            str(folder),
            "make the folder writable or name another one",
        ) from error
    variables = {"JAVA_HOME": str(java.home), "SPARK_CONF_DIR": str(folder / "conf")}
    os.environ.update(variables)
    return LocalEnvironment(java, folder, variables)


def get_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    config: Mapping[str, str] | None = None,
    report: Callable[[str], None] | None = None,
) -> SparkSession:
    """The Spark session to work on, proven to answer and to have a catalog.

    Args:
        master: a master's URL (``spark://host:7077``, ``yarn``, ``local[4]``).
        remote: a Spark Connect URL (``sc://host:15002``). ``SPARK_REMOTE`` counts as given.
        config: settings of a session that is started here, as dbt would start it. Without them, an
            embedded one that nobody has configured keeps its files below ``target``, which git
            ignores.
        report: is called with a sentence on which Spark is started on which Java.

    Returns:
        The session already active in this process, else a new one: Spark Connect, on the master, or
        embedded with the user's own configuration.

    Raises:
        RippleError: pyspark or Java is missing, the address does not answer, both addresses are
            given, or the metastore is locked by another process or cannot be written.
    """
    if master and remote:
        raise RippleError("both --master and --remote are given", fix="give one of them")
    version = _pyspark_version()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.enableHiveSupport()
    for key, value in (config or {}).items():
        builder = builder.config(key, value)
    session = SparkSession.getActiveSession()
    if session is not None:
        return session
    remote = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    if remote:
        return _connect(builder, remote)
    if master:
        _check_master(master)
        builder = builder.master(master)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # under spark-submit the JVM already runs
        minimum, maximum = _java_range(version)
        java = find_java(minimum=minimum, maximum=maximum)
        os.environ["JAVA_HOME"] = str(java.home)
        if not _is_configured():
            _check_current_folder()
            _quiet_log()
            for key, value in (_in_target() if config is None else {}).items():
                builder = builder.config(key, value)
        if report:
            report(f"Spark {'.'.join(map(str, version))} on {java}")
    # Bars of stages, which Spark sends into pipes and logs, too.
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    return _start(builder, master)


def _start(builder: SparkSession.Builder, master: str | None) -> SparkSession:
    """Start a session in this process and touch its catalog, so that it fails here if it must."""
    try:
        session = builder.getOrCreate()
        session.sql("show databases").collect()
    except Exception as error:
        raise _explain(error, master) from error
    return session


def _connect(builder: SparkSession.Builder, url: str) -> SparkSession:
    """A Spark Connect session that has answered once."""
    if not url.startswith("sc://"):
        raise RippleError("is no Spark Connect address", url, "write it as sc://host:15002")
    _check_addresses(url, "Spark Connect server", "start the server or correct --remote")
    try:
        _shake_hands(url)
        session = builder.remote(url).getOrCreate()
        session.sql("show databases").collect()
    except ImportError as error:
        raise RippleError(
            f"the Spark Connect client is not installed ({first_line(error)})",
            url,
            'install it with `pip install "pyspark[connect]<4.4"`',
        ) from error
    except TimeoutError as error:
        raise RippleError(
            f"no Spark Connect server answers there within {HANDSHAKE_TIMEOUT:.0f} seconds",
            url,
            "check what listens there, and `use_ssl` and `token` of the address",
        ) from error
    except Exception as error:
        raise RippleError(
            f"the Spark Connect server refused ({first_line(error)})", url, "see its log"
        ) from error
    # dbt, in the same process, finds the server through the variable.
    os.environ["SPARK_REMOTE"] = url
    return session


def _shake_hands(url: str) -> None:
    """Open a channel to a Spark Connect server and drop it; the client itself retries for minutes.

    Raises:
        ImportError: the client is not installed.
        TimeoutError: what listens there does not speak gRPC.
    """
    from pyspark.sql.connect import client

    name = "DefaultChannelBuilder" if hasattr(client, "DefaultChannelBuilder") else "ChannelBuilder"
    import grpc  # type: ignore[import-untyped]

    with getattr(client, name)(url).toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=HANDSHAKE_TIMEOUT)
        except grpc.FutureTimeoutError as error:
            raise TimeoutError from error


def _check_master(master: str) -> None:
    """Refuse a master that nothing listens at; yarn and local have no address to try."""
    if re.match(r"(local(-cluster)?(\[|$)|yarn$)", master):
        return
    if not re.match(r"(spark|k8s)://", master):
        raise RippleError(
            "is no Spark master", master, "use spark://host:port, k8s://..., yarn or local[*]"
        )
    _check_addresses(master, "Spark master", "start the master or correct --master")


def _check_addresses(url: str, what: str, fix: str) -> None:
    """Raise unless one of the url's ``host[:port]`` takes a connection."""
    scheme, _, rest = url.partition("://")
    default = _DEFAULT_PORTS[scheme]
    if scheme == "k8s" and rest.startswith("http"):
        default = 80 if rest.startswith("http://") else default
        rest = rest.partition("://")[2]
    reason = "no host"
    for address in re.split(r"[/;?]", rest)[0].split(","):
        match = re.fullmatch(r"\[?([^\[\]]+?)\]?(?::(\d+))?", address)
        if match is None:
            continue
        try:
            socket.create_connection(
                (match[1], int(match[2] or default)), timeout=CONNECT_TIMEOUT
            ).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error) or "no answer"
            continue
        return
    raise RippleError(f"no {what} answers there ({reason.lower()})", url, fix)


def _explain(error: Exception, master: str | None) -> RippleError:
    """The one line for a session that did not start, read off Java's chain of causes."""
    causes = "\n".join(_causes(error))
    if "XSDB6" in causes:
        where = re.search(r"already booted the database (\S+?)\.?(\s|$)", causes)
        return RippleError(
            "the metastore is locked by another process (an embedded one serves one at a time)",
            where[1] if where else "metastore_db",
            "end the other Spark or dbt process and run again",
        )
    if re.search(r"Failed to (create|start) database|[Rr]ead-?only|Permission denied", causes):
        return RippleError(
            "the embedded metastore cannot be made or opened here",
            os.environ.get("SPARK_CONF_DIR") or str(Path.cwd()),
            "make the folder writable, or set SPARK_CONF_DIR to a configuration that names another",
        )
    if master and master.startswith("spark:") and "stopped SparkContext" in causes:
        return RippleError(
            "what listens there did not take the application within its three attempts",
            master,
            "check that it is a Spark master, of the version of this pyspark",
        )
    if "JAVA_GATEWAY_EXITED" in causes:
        return RippleError(
            "Spark's Java process ended before Spark was up",
            os.environ.get("SPARK_CONF_DIR") or str(Path.cwd()),
            "it has said why above: often a folder that cannot be written or a setting it rejects",
        )
    return RippleError(
        f"Spark did not start ({first_line(error)})",
        master or os.environ.get("SPARK_CONF_DIR") or "embedded Spark",
        "check its configuration",
    )


def _causes(error: BaseException) -> list[str]:
    """What an error says, then what the Java exceptions behind it say, the innermost last."""
    texts = [str(error)]
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None and len(texts) < 30:
        texts.append(str(java.toString()))
        java = java.getCause()
    return texts


def first_line(error: BaseException) -> str:
    """What an error says, in one line; of a chain of Java exceptions the innermost has the cause."""
    lines = _causes(error)[-1].strip().splitlines()
    line = re.sub(r"^[\w.$]+(Exception|Error): ", "", lines[0]) if lines else ""
    return line[:300] or type(error).__name__


def _is_configured() -> bool:
    """Whether somebody has told Spark where things are; else it uses the current folder."""
    return bool({"SPARK_CONF_DIR", "SPARK_HOME", "HIVE_CONF_DIR"} & os.environ.keys())


def _check_current_folder() -> None:
    """Refuse a folder in which an unconfigured Spark could not keep its metastore."""
    if not os.access(Path.cwd(), os.W_OK):
        raise RippleError(
            "cannot be written, and Spark's embedded metastore would be made there",
            str(Path.cwd()),
            "run in another folder, or set SPARK_CONF_DIR to a configuration that names one",
        )


def _in_target() -> dict[str, str]:
    """Settings for what an embedded Spark leaves behind; none where an older one's is here already."""
    if Path("metastore_db").exists():
        return {}
    folder = Path("target", "spark")
    return {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
    }


def _quiet_log() -> None:
    """Send Spark's log to a file: its default puts pages of a failed start before our one line."""
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    if "log4j" in options:
        return
    folder = user_cache()
    path = folder / "log4j2.properties"
    with contextlib.suppress(OSError):
        write_atomically(path, _LOG4J.format(file=folder / "spark.log").encode())
        option = _quote_option(f"-Dlog4j2.configurationFile={path}")
        os.environ["SPARK_SUBMIT_OPTS"] = f"{options} {option}".strip()


def _pyspark_version() -> tuple[int, int]:
    """Major and minor of the installed pyspark."""
    if importlib.util.find_spec("pyspark") is None:
        raise RippleError("pyspark is not installed", fix=INSTALL_PYSPARK)
    import pyspark

    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def _java_range(version: tuple[int, int]) -> tuple[int, int]:
    """The oldest and the newest Java release a Spark runs on."""
    return 17 if version >= (4, 0) else 8, 25 if version >= (4, 3) else 23


def _local_settings(folder: Path) -> dict[str, str]:
    """Settings of a small Spark that keeps to itself."""
    return {
        "spark.master": "local[*]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder / "tmp"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.hive.exec.scratchdir": str(folder / "tmp" / "hive"),
        # Thousands of rows: a shuffle into 200 files would take longer than the query.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _table_format_settings(
    file_format: FileFormat, version: tuple[int, int], folder: Path
) -> dict[str, str]:
    """Jars, extension and catalog of a table format."""
    packages = _DELTA if file_format == "delta" else _ICEBERG
    if version not in packages:
        versions = ", ".join(f"{major}.{minor}" for major, minor in sorted(packages))
        raise RippleError(
            f"has no release for Spark {version[0]}.{version[1]}",
            file_format,
            f"use Spark {versions} or parquet",
        )
    common = {
        "spark.jars.packages": packages[version],
        "spark.jars.ivySettings": str(folder / "conf" / "resolver.xml"),
        # What the pyspark wheel has already.
        "spark.jars.excludes": "org.apache.hadoop:*,org.apache.parquet:*,org.slf4j:*,"
        "org.apache.logging.log4j:*",
        # Hive cannot follow every alteration of their schema and logs an error for each.
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
    }
    if file_format == "delta":
        return common | {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # A log of a few entries; the default replays it in 50 tasks at every statement.
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    return common | {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
        # The embedded metastore has one user and no lock manager.
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    }


def _quote_option(option: str) -> str:
    """A JVM option as Spark's launcher reads it back: quoted where it holds a space."""
    return f'"{option}"' if " " in option else option


def _escape_property(value: str) -> str:
    """A value as java.util.Properties reads it back."""
    return value.replace("\\", "\\\\")
