"""The report computes of artifacts what the package's models compute of the same artifacts when they are loaded.

Projects with histories drawn by chance: edits of definitions, types and contracts, runs that fail and recover. Each is
loaded into DuckDB, the models are built once, and every figure of every week is compared.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, loaded, rows
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project, RunResult, Timing
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.pages.consecutive_loads import Load
from dbt_ripple.pages.report import mondays
from dbt_ripple.pages.report_from_artifacts import from_artifacts
from dbt_ripple.rendering.page_documents import DomainWeek, ReportDocument, WeekFigures

pytestmark = pytest.mark.slow

WEEKS = mondays(datetime.now(UTC).date(), 4)
FIRST = datetime.combine(WEEKS[0], datetime.min.time(), UTC) + timedelta(hours=9)
HISTORIES = 12
REFUSED = "This model has an enforced contract that failed."
MODELS = ("stg", "top", "ids", "mart")
TESTS = ("amount", "status", "ids", "both")


@functools.cache
def now() -> datetime:
    """When the first of these runs: what is open is counted until the models are built, some seconds later."""
    return datetime.now(UTC).replace(microsecond=0)


def side(name: str, number: int, when: datetime, chance: random.Random) -> Project:
    """One of the states of a project."""
    amount = chance.choice(["amount", "amount", "amount * 2", "amount + 1"])
    status = chance.choice(["status", "status", "nullif(status, 'x')"])
    more = chance.choice(["", "", ", id + 1 as next_id"])
    rows_ = chance.choice(["", "", " where amount > 0"])
    total = chance.choice(["sum(amount)", "sum(amount)", "avg(amount)"])
    version = chance.choice([1, 1, 1, 2])
    typed = chance.choice(["int", "int", "bigint"])
    nodes = [
        orders(),
        node(
            "model.p.stg",
            f"select id, {amount} as amount, {status} as status{more} from s.orders{rows_}",
            RAW,
            meta={"domain": "core"},
        ),
        node(
            "model.p.top",
            "select id, amount, status from s.stg",
            "model.p.stg",
            access="public",
            group="sales",
            meta={"criticality": "tier1", "certified": True},
        ),
        node("model.p.ids", "select id from s.stg", "model.p.stg"),
        node(
            "model.p.mart",
            f"select status, {total} as total from s.top group by status",
            "model.p.top",
            group="sales",
            meta={"contract_version": version},
        ),
        node("exposure.p.report", None, "model.p.top", meta={"owner": "bob"}),
        node(
            "exposure.p.totals", None, "model.p.mart", meta={"referenced_columns": ["mart.total"]}
        ),
        check("amount", "select amount from s.top where amount is null", "model.p.top"),
        check(
            "status", "select status from s.top where status is null", "model.p.top", tags=["slo"]
        ),
        check("ids", "select id from s.ids group by id having count(*) > 1", "model.p.ids"),
        check(
            "both",
            "select t.id from s.top as t join s.ids as i on t.id = i.id where t.amount < 0",
            "model.p.top",
            "model.p.ids",
        ),
    ]
    if chance.random() < 0.3:
        nodes.append(node("model.p.lost", "select * from f(1)", "model.p.stg", language="python"))
    if chance.random() < 0.15:
        del nodes[5]
    made = project(
        *nodes,
        catalog=LISTED,
        types={"model.p.top": {"id": "int", "amount": typed, "status": "string"}},
        adapter="duckdb",
    )
    made.metadata.generated_at = when
    made.metadata.project_name = name
    return made.having(
        digest=f"{name} {number}",
        run_args={"target": "dev", "which": "build"},
        run_results=results(f"{name} {number}", when, chance),
    )


def results(invocation: str, when: datetime, chance: random.Random) -> list[RunResult]:
    found = []
    for number, name in enumerate((*MODELS, *TESTS)):
        is_model = number < len(MODELS)
        if chance.random() < 0.2:
            continue
        drawn = chance.random()
        good = "success" if is_model else "pass"
        bad = "error" if is_model else chance.choice(["fail", "error", "warn", "skipped"])
        at = when + timedelta(minutes=number + 1)
        found.append(
            RunResult(
                unique_id=f"{'model' if is_model else 'test'}.p.{name}",
                invocation_id=invocation,
                status=good if drawn < 0.65 else bad,
                message=REFUSED if is_model and drawn > 0.9 else None,
                timing=[Timing(name="execute", started_at=at, completed_at=at)],
            )
        )
    return found


def history_of(seed: int) -> list[Project]:
    chance = random.Random(seed)
    when, found = FIRST, []
    for number in range(chance.randrange(4, 9)):
        found.append(side(f"p{seed}", number, when, chance))
        when += timedelta(hours=chance.choice([1, 5, 30, 80]))
        if when > now() - timedelta(hours=1):
            break
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package built over all histories."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        duck_project.make(folder, {})
        variables = ("--vars", "{ripple_max_projects: 0}")
        dbt(folder, "run", "--select", "stg_ripple__snapshots", *variables)
        for seed in range(HISTORIES):
            for state in history_of(seed):
                loaded(folder, state, "sha")
        done = dbt(
            folder, "run", "--select", "+ripple_lineage_kpis", "+ripple_domain_kpis", *variables
        )
        bad = [(r.node.name, r.message) for r in done if str(r.status) not in ("success", "no-op")]
        assert bad == []
        yield folder


@functools.cache
def reported(seed: int) -> ReportDocument:
    loads = [Load(p, analyse(p, expressions=True, own=True)) for p in history_of(seed)]
    return from_artifacts(loads, WEEKS, now())


@functools.cache
def all_of_model(folder: Path, model: str, fields: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The rows of all projects: a view is computed anew whenever it is asked."""
    keys = "project_name, domain, week" if model == "ripple_domain_kpis" else "project_name, week"
    return rows(folder, f"select {keys}, {', '.join(fields)} from dev_ripple.{model}")


def of_model(folder: Path, model: str, fields: tuple[str, ...], seed: int) -> dict[Any, Any]:
    size = 3 if model == "ripple_domain_kpis" else 2
    made = {}
    for row in all_of_model(folder, model, fields):
        if row[0] == f"p{seed}":
            key = tuple(k.date() if isinstance(k, datetime) else k for k in row[1:size])
            made[key] = dict(zip(fields, row[size:], strict=True))
    return made


KPIS = (
    *("node_coverage", "tier1_node_coverage", "tier1_column_coverage", "certified_path_integrity"),
    *("unknown_downstreams", "changes", "median_blast_radius", "incidents_opened"),
    *("incidents_closed", "mttr_minutes"),
)
DOMAINS = (
    *("downtime_hours", "incidents_opened", "incidents_closed", "mttr_minutes"),
    *("contract_violations", "changes"),
)


def same(mine: float | None, theirs: Any, *, within: float = 1e-6) -> bool:
    if mine is None:
        # What is not known is no number here; the models say 0 of what they count.
        return theirs is None or float(theirs) == 0
    return theirs is not None and float(theirs) == pytest.approx(mine, abs=within)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_figures_are_those_of_the_models(told: Path, seed: int) -> None:
    report = reported(seed)
    theirs = of_model(told, "ripple_lineage_kpis", KPIS, seed)
    largest = of_model(told, "ripple_median_blast_radius", ("largest_blast_radius",), seed)
    for week in report.weeks:
        row = theirs.get((week.week,), dict.fromkeys(KPIS))
        mine = msgspec.structs.asdict(week)
        differ = {f: (mine[f], row[f]) for f in KPIS if not same(mine[f], row[f])}
        assert not differ, week.week
        assert same(
            week.largest_blast_radius, largest.get((week.week,), {}).get("largest_blast_radius")
        )
    domains = of_model(told, "ripple_domain_kpis", DOMAINS, seed)
    mine_by_key = {(one.domain, one.week): msgspec.structs.asdict(one) for one in report.domains}
    for key in {*mine_by_key, *(k for k in domains if k[1] in WEEKS)}:
        own = mine_by_key.get(key, dict.fromkeys(DOMAINS))
        row = domains.get(key, dict.fromkeys(DOMAINS))
        differ = {f: (own[f], row[f]) for f in DOMAINS if not same(own[f], row[f], within=0.2)}
        assert not differ, key
    totals: dict[date, int] = {}
    for (_, at), row in domains.items():
        totals[at] = totals.get(at, 0) + row["contract_violations"]
    for week in report.weeks:
        assert same(week.contract_violations, totals.get(week.week)), week.week


def test_the_histories_have_something_to_tell() -> None:
    weeks: list[WeekFigures] = []
    domains: list[DomainWeek] = []
    for seed in range(HISTORIES):
        report = reported(seed)
        weeks += report.weeks
        domains += report.domains
    for field in (*KPIS, "contract_violations", "largest_blast_radius"):
        assert len({getattr(week, field) for week in weeks}) > 2 or field.startswith(
            ("tier1", "certified")
        ), field
    assert {one.domain for one in domains} == {"core", "sales", "no domain"}
