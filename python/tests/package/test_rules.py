"""The rules of the package, run by a real dbt on DuckDB over the twin projects.

The good twin breaks none; what the bad one breaks is in integration_tests/twin/expected/rules.csv.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from dbt_here import run_dbt

from dbt_ripple.artifacts import read_project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import TABLES
from dbt_ripple.spark.load import arrow_table

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
TWIN = REPOSITORY / "integration_tests" / "twin"
GOVERNANCE = ("--indirect-selection", "cautious", "--select", "+dbt_ripple.governance")
RULES = ("owner_missing", "pii_exposed", "pii_untagged", "tags_required", "tier1_key_untested")
TRUTHS = ("competing_definitions", "duplicate_definitions")
OF_COLUMNS = ("pii_exposed", "pii_untagged", *TRUTHS)
SELECTED = (*GOVERNANCE, *(f"+ripple_{model}" for model in TRUTHS))


class Twin:
    """A copy of a twin project, with a warehouse of its own."""

    def __init__(self, which: str, folder: Path) -> None:
        self.folder = folder / which
        shutil.copytree(TWIN / which, self.folder, ignore=shutil.ignore_patterns("target", "logs"))
        packages = {"packages": [{"local": str(REPOSITORY)}]}
        (self.folder / "packages.yml").write_text(json.dumps(packages))
        self.warehouse = folder / f"{which}.duckdb"
        # What `dbt deps` makes of a local package.
        (self.folder / "dbt_packages").mkdir()
        (self.folder / "dbt_packages" / "dbt_ripple").symlink_to(REPOSITORY)

    def dbt(self, *arguments: str, fails: bool = False) -> str:
        variables = {"RIPPLE_DUCKDB_PATH": str(self.warehouse), "DBT_TARGET": "duckdb"}
        succeeded, output = run_dbt(self.folder, *arguments, **variables)
        assert succeeded is not fails, output
        return output

    def load(self) -> None:
        """What `dbt-ripple load` does, into DuckDB."""
        self.dbt("compile")
        made = read_project(self.folder / "target")
        snapshot = build_rows(made, analyse(made, expressions=True, own=True))
        with duckdb.connect(str(self.warehouse)) as connection:
            connection.sql("create schema if not exists twin_ripple_raw")
            for table in TABLES:
                connection.register("loaded", arrow_table(table, snapshot.rows[table]))
                name = f'twin_ripple_raw."{table}"'
                connection.sql(f"create or replace table {name} as select * from loaded")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.warehouse)) as connection:
            return sorted(connection.sql(sql).fetchall())

    def findings(self) -> list[tuple[str, str, str]]:
        """Rule, unique_id and column of whatever breaks one."""
        return sorted(
            (rule, row[0], row[1] or "")
            for rule in (*RULES, *TRUTHS)
            for row in self.rows(
                f"select unique_id, {'column_name' if rule in OF_COLUMNS else 'null'} "
                f"from twin_ripple.ripple_{rule}"
            )
        )

    def lineage_tests(self) -> dict[str, str]:
        """How the tests of the lineage ended, by the kind of test."""
        _, output = run_dbt(
            self.folder,
            *("test", "--select", "customer_labels", "--indirect-selection", "cautious"),
            RIPPLE_DUCKDB_PATH=str(self.warehouse),
            DBT_TARGET="duckdb",
        )
        ended = re.findall(r"(PASS|FAIL)(?: 1)? dbt_ripple_(comes_from|not_from)", output)
        return {kind: status for status, kind in ended}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Twin:
    twin = Twin("bad", tmp_path_factory.mktemp("twins"))
    twin.load()
    return twin


def test_the_good_twin_breaks_no_rule(tmp_path: Path) -> None:
    twin = Twin("good", tmp_path)
    twin.load()
    twin.dbt("build", "--warn-error", *SELECTED)
    assert twin.findings() == []
    assert twin.lineage_tests() == {"comes_from": "PASS", "not_from": "PASS"}
    origins = twin.rows(
        "select origin, count(*) from twin_ripple.ripple_pii_columns group by origin"
    )
    assert [origin for origin, _ in origins] == ["declared", "inherited"]


def test_the_bad_twin_breaks_what_is_expected(bad: Twin) -> None:
    out = bad.dbt("build", *SELECTED)
    with (TWIN / "expected" / "rules.csv").open(newline="") as file:
        expected = sorted(tuple(row.values()) for row in csv.DictReader(file))
    assert bad.findings() == expected
    for rule in RULES:
        times = sum(row[0] == rule for row in expected)
        assert times and f"WARN {times} {rule}" in out
    assert {row[0] for row in expected} == {*RULES, *TRUTHS}
    assert bad.lineage_tests() == {"comes_from": "FAIL", "not_from": "PASS"}


def test_levels(bad: Twin) -> None:
    levels = {"pii_exposed": "block", "owner_missing": False, "pii_untagged": "warn"}
    levels_are = json.dumps({"ripple_rules": levels})
    out = bad.dbt("test", "--select", "dbt_ripple.governance", "--vars", levels_are, fails=True)
    assert "FAIL 1 pii_exposed" in out and "WARN 1 pii_untagged" in out
    assert "owner_missing" not in out
    out = bad.dbt("parse", "--vars", '{"ripple_rules": {"pii_exposed": "loud"}}', fails=True)
    assert "pii_exposed is loud; it can be off, warn or block" in " ".join(out.split())


def test_exceptions_in_a_list_or_in_a_seed(bad: Twin) -> None:
    def left(exceptions: list[dict[str, str]] | str) -> tuple[int, int]:
        """How much of two rules is still found."""
        variables = json.dumps({"ripple_exceptions": exceptions})
        rules = ("ripple_pii_untagged", "ripple_pii_exposed")
        bad.dbt("build", "--select", "let_pass", *rules, "--vars", variables)
        untagged, exposed = (len(bad.rows(f"select * from twin_ripple.{r}")) for r in rules)
        return untagged, exposed

    untagged = {"unique_id": "model.twin.mailing_list", "reason": "it's known"}
    exposed = {"unique_id": "exposure.twin.partner_feed", "reason": "known"}
    listed = [
        {**untagged, "rule": "pii_untagged", "column_name": "ADDRESS"},
        {**exposed, "rule": "pii_exposed", "column_name": "another"},
        {**exposed, "rule": "pii_untagged"},
    ]
    (bad.folder / "seeds").mkdir()
    seed = bad.folder / "seeds" / "let_pass.csv"
    seed.write_text(
        "rule,unique_id,column_name,reason\npii_exposed,exposure.twin.partner_feed,,x\n"
    )
    assert left(listed) == (0, 1)
    assert left("let_pass") == (1, 0)
    out = bad.dbt("parse", "--vars", '{"ripple_exceptions": [{"rule": "x"}]}', fails=True)
    assert "an entry needs rule, unique_id and reason" in " ".join(out.split())
