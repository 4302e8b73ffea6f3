"""A real target folder as head, a copy of it as base, and edits of either."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

from cli_shell import Done, Shell

STG = "model.shop.stg_orders"
V1, V2 = "model.shop.dim_customers.v1", "model.shop.dim_customers.v2"
UNIQUE = "test.shop.unique_stg_orders_order_id.e3b841c71a"
NOT_NEGATIVE = "test.shop.no_negative_amount"
FROM_RAW = "select order_id, customer_id, amount, ordered_at from raw.raw_orders"


class Sides:
    """``sides("select")`` runs it with ``--state state``; ``edit`` changes one side's manifest."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        shutil.copytree(shell.folder / "target", shell.folder / "state")

    def __call__(self, *arguments: str) -> Done:
        return self.shell(*arguments, "--state", "state")

    def refused(self, *arguments: str) -> str:
        return self.shell.refused(*arguments, "--state", "state")

    def edit(
        self, change: Callable[[dict[str, Any]], object], file: str = "target/manifest.json"
    ) -> None:
        path = self.shell.folder / file
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    def write_sql(self, unique_id: str, sql: str, side: str = "target") -> None:
        """Give a node another query, as written and as compiled."""

        def change(manifest: dict[str, Any]) -> None:
            node = manifest["nodes"][unique_id]
            assert node["compiled_code"] != sql
            node |= {"compiled_code": sql, "raw_code": sql, "checksum": {"checksum": sql}}

        self.edit(change, f"{side}/manifest.json")

    def parsed_only(self, side: str = "target") -> None:
        """Leave what `dbt parse` leaves: no compiled SQL."""

        def change(manifest: dict[str, Any]) -> None:
            for node in manifest["nodes"].values():
                node |= {"compiled_code": None, "compiled": False}

        self.edit(change, f"{side}/manifest.json")

    def passed(self) -> None:
        """Let every test of base have passed, in the invocation that compiled it."""

        def change(results: dict[str, Any]) -> None:
            for result in results["results"]:
                if result["unique_id"].startswith("test."):
                    result |= {"status": "pass", "failures": 0}

        self.edit(change, "state/run_results.json")
