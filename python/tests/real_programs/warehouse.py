"""The shop of the tutorial in a real PostgreSQL: what is landed, raw, built by dbt, and reported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from served_collector import PACKAGE

from real_programs.environments import DBT, python_with
from real_programs.programs import Postgres

HERE: Final = Path(__file__).parent
_LANDED: Final = """
create schema landing; create schema raw; create schema analytics; create schema reports; create schema ml;
create table landing.orders (
    id int, customer int, placed_at timestamp, amount_cents int, shipping_cents int, channel text, voucher text
);
insert into landing.orders values
    (1, 10, '2026-11-01 08:00', 1250, 300, 'web', 'SPRING'),
    (2, 10, '2026-11-02 09:00', 2000, 0, 'app', ' '),
    (3, 11, '2026-11-02 10:30', 4900, 450, 'web', null),
    (4, 12, '2026-11-03 11:00', 100, 300, 'staff', null);
create table raw.raw_orders (
    order_id int, customer_id int, ordered_at timestamp, order_total numeric(12, 2),
    shipping_cost numeric(12, 2), channel text, legacy_discount_code text
);
"""


class Warehouse:
    """The database, and the dbt project that builds in it.

    Attributes:
        namespace: what OpenLineage calls the database.
        project: the folder of the dbt project; its artifacts are in ``target``.
    """

    def __init__(self, server: Postgres, folder: Path) -> None:
        self.server = server
        self.namespace = f"postgres://127.0.0.1:{server.port}"
        self.uri = f"postgres://shop:none@127.0.0.1:{server.port}/shop"
        self.jdbc = f"jdbc:postgresql://127.0.0.1:{server.port}/shop?user=shop"
        self.project = folder / "shop"
        shutil.copytree(HERE / "shop", self.project)
        server.run(_LANDED)

    def build(self) -> None:
        """Run `dbt build` and `dbt docs generate` with dbt's own adapter of PostgreSQL."""
        bin_ = python_with("dbt-postgres", DBT)
        results = self.project / "target" / "run_results.json"
        for command in (["build"], ["docs", "generate"]):
            self._run([str(bin_ / "dbt"), "--no-use-colors", *command])
            if command == ["build"]:
                shutil.copy(results, self.project / "run_results.json")
        # `docs generate` writes its own results over those of the build.
        (self.project / "run_results.json").replace(results)

    def emit(self, collector: str, *arguments: str) -> None:
        """Send the last build's events."""
        program = "from dbt_ripple.cli import main; main()"
        self._run(
            [
                *(sys.executable, "-c", program, "emit"),
                *("--dataset-namespace", self.namespace, *arguments),
            ],
            OPENLINEAGE_URL=collector,
            PYTHONPATH=str(PACKAGE),
        )

    def _run(self, command: list[str], **environment: str) -> None:
        done = subprocess.run(
            command,
            cwd=self.project,
            env={
                **os.environ,
                "SHOP_PORT": str(self.server.port),
                "DBT_PROFILES_DIR": str(self.project),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
