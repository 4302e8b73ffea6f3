"""What real producers need, in environments of their own below ``.cache``: made once, kept for the next run.

A program that cannot be had raises `Unavailable`, whose text says why; the fixtures skip with it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[3]
CACHE: Final = REPOSITORY / ".cache" / "producers"

AIRFLOW: Final = (
    "apache-airflow==3.3.2",
    "apache-airflow-providers-common-sql==2.4.0",
    "apache-airflow-providers-openlineage==2.20.3",
    "apache-airflow-providers-postgres==7.1.1",
)
DBT: Final = ("dbt-core==1.11.16", "dbt-postgres==1.11.0")
CLIENT: Final = ("openlineage-python[kafka]==1.54.0",)
KAFKA: Final = (
    "org.apache.kafka:kafka_2.13:4.3.1",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.1",
)
SPARK: Final = (
    "io.openlineage:openlineage-spark_2.13:1.53.0",
    "org.postgresql:postgresql:42.7.8",
)
POSTGRES: Final = Path("/usr/lib/postgresql")
"""Where Debian has the server's programs, each version in a folder of its own."""

_SECONDS: Final = 900


class Unavailable(Exception):  # noqa: N818 - it is a reason, not an error
    """A program that this machine does not have and that could not be brought."""


def python_with(name: str, packages: tuple[str, ...]) -> Path:
    """The ``bin`` folder of a virtual environment that has these packages and nothing of ours."""
    folder = _folder(name, packages)
    if not (folder / "ready").exists():
        uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
        if uv is None:
            raise Unavailable("uv, which makes the environments, is not installed")
        shutil.rmtree(folder, ignore_errors=True)
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], name)
        python = str(folder / "bin" / "python")
        if packages:
            _run([uv, "pip", "install", "--quiet", "--python", python, *packages], name)
        (folder / "ready").touch()
    return folder / "bin"


def jars(name: str, artifacts: tuple[str, ...]) -> Path:
    """A folder with these jars and what they need, by Maven."""
    folder = _folder(name, artifacts)
    if not (folder / "ready").exists():
        _need("mvn", "java")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "pom.xml").write_text(_pom(artifacts))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        _run([*command, f"-DoutputDirectory={folder / 'libs'}"], name, folder)
        (folder / "ready").touch()
    return folder / "libs"


def built_by_maven(
    name: str, sources: list[Path], artifacts: tuple[str, ...], versions: str
) -> Path:
    """A folder with the classes of some sources (``target/classes``) and what they need (``libs``).

    Args:
        name: of the folder.
        sources: each with ``java``, and perhaps ``resources``.
        artifacts: what they name.
        versions: the artifact that has the versions of what those need.
    """
    folder = _folder(name, (*map(str, sources), *artifacts))
    if not (folder / "ready").exists():
        _need("mvn", "java")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "pom.xml").write_text(_pom(artifacts, versions, sources))
        command = ["mvn", "-q", "-B", "compile", "dependency:copy-dependencies"]
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={folder / 'libs'}"]
        _run([*command, *options], name, folder)
        (folder / "ready").touch()
    return folder


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed")


def postgres_programs() -> Path:
    """The folder of PostgreSQL's server programs."""
    for folder in sorted(POSTGRES.glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    if found is None:
        raise Unavailable("PostgreSQL's server (postgresql-15 on Debian) is not installed")
    return Path(found).resolve().parent


def _folder(name: str, wanted: tuple[str, ...]) -> Path:
    """Another folder for other versions, so that a change of them is installed."""
    return CACHE / f"{name}-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:8]}"


def _run(command: list[str], name: str, where: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=where, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} was not installed within {_SECONDS} seconds") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
        raise Unavailable(f"{name} could not be installed: {said[-1]}")


def _pom(artifacts: tuple[str, ...], versions: str = "", sources: Sequence[Path] = ()) -> str:
    def dependency(artifact: str, more: str = "") -> str:
        group, name, version = artifact.split(":")
        return (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version>{more}</dependency>"
        )

    managed = dependency(versions, "<type>pom</type><scope>import</scope>") if versions else ""
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>of.tests</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
        f"<dependencies>{''.join(map(dependency, artifacts))}</dependencies>"
        f"{_compiled(sources) if sources else ''}</project>"
    )


def _compiled(sources: Sequence[Path]) -> str:
    """The part of a pom.xml that compiles some sources, with Lombok."""
    resources = "".join(
        f"<resource><directory>{source / 'resources'}</directory></resource>" for source in sources
    )
    further = "".join(f"<source>{source / 'java'}</source>" for source in sources[1:])
    return (
        "<properties><maven.compiler.release>17</maven.compiler.release>"
        "<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>"
        f"<build><sourceDirectory>{sources[0] / 'java'}</sourceDirectory>"
        f"<resources>{resources}</resources><plugins>"
        "<plugin><groupId>org.codehaus.mojo</groupId>"
        "<artifactId>build-helper-maven-plugin</artifactId><version>3.6.0</version><executions>"
        "<execution><phase>generate-sources</phase><goals><goal>add-source</goal></goals>"
        f"<configuration><sources>{further}</sources></configuration></execution></executions></plugin>"
        "<plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version>"
        "<configuration><parameters>true</parameters><annotationProcessorPaths><path>"
        "<groupId>org.projectlombok</groupId><artifactId>lombok</artifactId>"
        "<version>1.18.34</version></path></annotationProcessorPaths></configuration></plugin>"
        "</plugins></build>"
    )
