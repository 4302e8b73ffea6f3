"""The embedded environment, and every way a session fails to start as one line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dbt_ripple.errors import RippleError
from dbt_ripple.spark import session
from dbt_ripple.spark.session import get_session, local_environment


@pytest.fixture
def clean(monkeypatch):
    """An environment in which nothing about Spark is said; put back afterwards."""
    for name in ("SPARK_CONF_DIR", "SPARK_REMOTE", "SPARK_HOME", "SPARK_SUBMIT_OPTS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    return monkeypatch


@pytest.fixture
def no_session(clean):
    """As if this process had no session yet; the run's own is left alone."""
    from pyspark.sql import SparkSession

    clean.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    return clean


def settings(folder: Path) -> dict[str, str]:
    lines = (folder / "conf" / "spark-defaults.conf").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines)


def test_local_environment_keeps_everything_in_its_folder(tmp_path, clean):
    folder = tmp_path / "with space"
    made = local_environment(folder)
    assert os.environ["SPARK_CONF_DIR"] == str(folder / "conf")
    assert os.environ["JAVA_HOME"] == str(made.java.home) == made.variables["JAVA_HOME"]
    spark_settings = settings(folder)
    for key in ("spark.sql.warehouse.dir", "spark.local.dir", "spark.hadoop.hive.exec.scratchdir"):
        assert spark_settings[key].startswith(str(folder))
    assert (
        f'"-Dderby.system.home={folder}/metastore"'
        in spark_settings["spark.driver.extraJavaOptions"]
    )
    assert str(folder) in (folder / "conf" / "log4j2.properties").read_text()
    assert "spark.jars.packages" not in spark_settings


@pytest.mark.parametrize(
    ("file_format", "jar"),
    [("delta", "io.delta:delta-spark_"), ("iceberg", "org.apache.iceberg:iceberg-spark-runtime-")],
)
def test_table_formats_name_their_jars_and_no_address(file_format, jar, tmp_path, clean):
    clean.setattr(session, "_pyspark_version", lambda: (4, 1))
    local_environment(tmp_path, file_format)
    spark_settings = settings(tmp_path)
    assert spark_settings["spark.jars.packages"].startswith(jar)
    resolver = Path(spark_settings["spark.jars.ivySettings"]).read_text()
    assert "ibiblio" in resolver
    assert "://" not in resolver


def test_a_spark_the_format_does_not_follow_is_one_line(tmp_path, clean):
    clean.setattr(session, "_pyspark_version", lambda: (4, 3))
    clean.setattr(session, "find_java", lambda **_: session.Java(Path("/j"), 17, "PATH"))
    with pytest.raises(
        RippleError, match=r"iceberg: has no release for Spark 4\.3; use Spark 3\.5"
    ):
        local_environment(tmp_path, "iceberg")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, clean):
    (tmp_path / "file").touch()
    with pytest.raises(RippleError, match="cannot be written"):
        local_environment(tmp_path / "file" / "below")


def test_no_pyspark_says_how_to_install_it(clean):
    clean.setattr(session.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RippleError, match='`pip install "pyspark<4'):
        get_session()


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_an_address_nobody_listens_at_is_one_line(scheme, no_session):
    url = f"{scheme}://127.0.0.1:{closed_port()}"
    with pytest.raises(RippleError, match="answers there \\(connection refused\\)") as caught:
        get_session(**{"master" if scheme == "spark" else "remote": url})
    assert caught.value.where == url


def test_several_masters_need_one_that_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        server.settimeout(5)
        session._check_master(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{port}")
        server.accept()[0].close()  # it was this one that was asked
        session._check_addresses(f"sc://127.0.0.1:{port}/;use_ssl=true", "server", "fix")
        server.accept()[0].close()
    with pytest.raises(RippleError, match="no Spark master answers there"):
        session._check_master(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{closed_port()}")


@pytest.mark.parametrize(
    "url", ["local", "local[*]", "local[4,2]", "local-cluster[1,1,512]", "yarn"]
)
def test_masters_without_an_address(url, monkeypatch):
    asked = []
    monkeypatch.setattr(session.socket, "create_connection", lambda *a, **_: asked.append(a))
    session._check_master(url)
    assert asked == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"master": "host:7077"}, "is no Spark master"),
        ({"remote": "http://host"}, "is no Spark Connect address"),
        ({"master": "yarn", "remote": "sc://host"}, "both --master and --remote"),
    ],
)
def test_addresses_that_make_no_sense(options, message, no_session):
    with pytest.raises(RippleError, match=message):
        get_session(**options)


def test_what_listens_but_is_no_connect_server_is_given_up_soon(no_session):
    pytest.importorskip("grpc")
    no_session.setattr(session, "HANDSHAKE_TIMEOUT", 1.0)
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            while True:
                try:
                    kept.append(server.accept())
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        with pytest.raises(RippleError, match="no Spark Connect server answers there within"):
            get_session(remote=f"sc://127.0.0.1:{server.getsockname()[1]}")


def test_java_exceptions_are_read_to_their_cause():
    class Java:
        def __init__(self, text, cause=None):
            self.text, self.cause = text, cause

        def toString(self):  # noqa: N802
            return self.text

        def getCause(self):  # noqa: N802
            return self.cause

    error = Exception("An error occurred while calling o1.sql")
    error.java_exception = Java(
        "org.apache.X: outer", Java("java.io.IOException: Mkdirs failed\n at a.b")
    )
    assert session.first_line(error) == "Mkdirs failed"
    assert session.first_line(ValueError()) == "ValueError"
    locked = Exception(
        "ERROR XSDB6: Another instance of Derby may have already booted the database /m/db."
    )
    explained = session._explain(locked, None)
    assert (explained.where, explained.what) == ("/m/db", session._explain(locked, "local").what)
    assert "locked by another process" in explained.what
    failed = Exception("Failed to create database 'metastore_db', see the next")
    assert "cannot be made or opened" in session._explain(failed, None).what
    gone = Exception("[JAVA_GATEWAY_EXITED] Java gateway process exited")
    assert "Java process ended" in session._explain(gone, None).what


def test_an_unconfigured_spark_needs_a_folder_it_can_write(tmp_path, clean):
    clean.chdir(tmp_path)
    session._check_current_folder()
    clean.setattr(session.os, "access", lambda *_: False)
    with pytest.raises(RippleError, match="embedded metastore would be made there"):
        session._check_current_folder()


# --- on Spark --------------------------------------------------------------------------------------


@pytest.mark.spark
def test_dbt_finds_the_same_session(spark):
    from pyspark.sql import SparkSession

    assert get_session() is spark
    dbts = SparkSession.builder.enableHiveSupport().getOrCreate()
    assert dbts.sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.catalogImplementation") == "hive"


@pytest.mark.spark
@pytest.mark.slow
def test_a_metastore_another_process_has_is_one_line(spark, tmp_path):
    folder = Path(os.environ["SPARK_CONF_DIR"]).parent
    code = (
        "import sys; from pathlib import Path; from dbt_ripple.errors import RippleError\n"
        "from dbt_ripple.spark.session import get_session\n"
        "try: get_session()\n"
        "except RippleError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert run.stdout == (
        f"{folder}/metastore/metastore_db: the metastore is locked by another process (an embedded"
        " one serves one at a time); end the other Spark or dbt process and run again\n"
    )
    assert not any(tmp_path.iterdir())
