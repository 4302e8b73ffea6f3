"""A real Marquez, compiled by Maven from the source that MARQUEZ_SOURCE names, beside a PostgreSQL of its own.

No registry has Marquez's server as a jar: `git clone --branch 0.51.1 https://github.com/MarquezProject/marquez`
and name the folder. Gradle, which Marquez is built by, is not needed.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from real_programs.environments import Unavailable, built_by_maven
from real_programs.programs import Postgres, Program, free_port, wait_for

VARIABLE: Final = "MARQUEZ_SOURCE"
_PARTS: Final = ("api/src/main", "clients/java/src/main")
_DROPWIZARD: Final = "2.1.12"
_LIBRARIES: Final = (
    *(f"io.dropwizard:dropwizard-{part}:{_DROPWIZARD}" for part in ("core", "jdbi3", "jackson")),
    *(f"io.dropwizard:dropwizard-{p}:{_DROPWIZARD}" for p in ("json-logging", "http2", "assets")),
    *(
        f"io.prometheus:simpleclient{part}:0.16.0"
        for part in ("", "_dropwizard", "_hotspot", "_servlet")
    ),
    *(
        f"org.jdbi:jdbi3-{part}:3.40.0"
        for part in ("core", "jackson2", "json", "postgres", "sqlobject")
    ),
    "com.google.guava:guava:32.1.3-jre",
    "com.graphql-java-kickstart:graphql-java-servlet:12.0.0",
    "com.graphql-java:graphql-java:20.9",
    "io.openlineage:openlineage-java:1.23.0",
    "io.sentry:sentry:6.34.0",
    "org.apache.commons:commons-lang3:3.17.0",
    "org.apache.httpcomponents:httpclient:4.5.14",
    "org.dhatim:dropwizard-sentry:2.1.6",
    "org.flywaydb:flyway-core:8.5.13",
    "org.opensearch.client:opensearch-java:2.22.0",
    "org.opensearch.client:opensearch-rest-client:2.19.1",
    "org.postgresql:postgresql:42.7.4",
    "org.projectlombok:lombok:1.18.34",
)
"""What its build.gradle files name."""

_CONFIG: Final = """
server:
  applicationConnectors: [{{type: http, port: {port}, bindHost: 127.0.0.1}}]
  adminConnectors: [{{type: http, port: {admin}, bindHost: 127.0.0.1}}]
db:
  driverClass: org.postgresql.Driver
  url: jdbc:postgresql://127.0.0.1:{postgres}/marquez
  user: shop
migrateOnStartup: true
graphql: {{enabled: false}}
search: {{enabled: false}}
logging: {{level: WARN, appenders: [{{type: console}}]}}
"""


class Marquez(Program):
    """Marquez on a free port.

    Args:
        server: the PostgreSQL in which it makes a database.
        folder: for its configuration and log.

    Attributes:
        url: what producers are told.
    """

    def __init__(self, server: Postgres, folder: Path) -> None:
        super().__init__()
        source = os.environ.get(VARIABLE)
        if not source:
            raise Unavailable(f"{VARIABLE} names no source of Marquez")
        places = [Path(source) / part for part in _PARTS]
        if not all((place / "java").is_dir() for place in places):
            raise Unavailable(f"{VARIABLE} {source} has no {' and '.join(_PARTS)}")
        built = built_by_maven(
            "marquez", places, _LIBRARIES, f"io.dropwizard:dropwizard-dependencies:{_DROPWIZARD}"
        )
        java = shutil.which("java")
        assert java is not None
        server.run("create database marquez", "postgres")
        folder.mkdir()
        port, config, log = free_port(), folder / "marquez.yml", folder / "log"
        config.write_text(_CONFIG.format(port=port, admin=free_port(), postgres=server.port))
        classes = f"{built / 'target' / 'classes'}:{built / 'libs'}/*"
        command = [java, "-Xmx512m", "-cp", classes, "marquez.MarquezApp", "server", str(config)]
        self.url = f"http://127.0.0.1:{port}"
        self.start(command, log, folder, {})
        try:
            wait_for("Marquez", lambda: self._is_up(), 180, log)
        except BaseException:
            self.stop()
            raise

    def get(self, *path: str, **query: Any) -> Any:
        """What it answers below /api/v1; the parts of the path are quoted."""
        quoted = "/".join(urllib.parse.quote(part, safe="") for part in path)
        url = f"{self.url}/api/v1/{quoted}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)

    def _is_up(self) -> bool:
        with suppress(OSError):
            return bool(self.get("namespaces")["namespaces"])
        return False
