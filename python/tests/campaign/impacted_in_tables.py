"""The model `ripple_impacted_tests`, run by Spark on many edits of the shop, beside what `select` answers.

    python python/tests/campaign/impacted_in_tables.py [--edits 300] [--seed 1] [--folder FOLDER]

The campaign's edits are made in the shop as dbt has compiled it: as it is, with the package and its hook
`record_run`, with declared assets and collected events on both sides, with both, and with readers among the assets, and
events, that only head has. Of both sides of each edit the rows that `load` writes are computed and written into the tables
of one Spark, each pair as a project of its own, so that the model's SQL, which dbt compiles for that
Spark, answers all of them at once. Loads themselves are tested elsewhere; 600 of them would take hours.

It exits with 1 where the answers differ: a test of the one that the other does not have. What the model's page says
of itself is counted apart: what `select` runs only to see whether it still compiles is left out, and of a seed whose file
changed every column counts, where `select` has both files to compare. Of what changed, head's load knows no types of keys,
as `select` knows none.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_builds import REPOSITORY, SHOP, Folder, copy_shop, install
from msgspec.structs import replace
from mutations import QUERY_KINDS, Mutator
from worlds import shop

sys.path.append(str(Path(__file__).parents[1]))

from collected_events import BROKER, dataset, run_event

from dbt_ripple.artifacts import CatalogColumn, Project
from dbt_ripple.artifacts.assets_file import DeclaredAsset, read_assets
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.asset_changes import declared_otherwise
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import RECORDED, TABLES
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.graph.order_seen import Types
from dbt_ripple.graph.test_outcomes import with_test_outcomes
from dbt_ripple.openlineage.collected.collected_assets import with_collected
from dbt_ripple.openlineage.collected.stored_events import read_events
from dbt_ripple.selection.select import impacted_tests, select_from

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from world import World

KINDS: Final = (*QUERY_KINDS, "hook", "seed", "test")
NOON: Final = datetime(2026, 11, 27, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Setting:
    """What stands around dbt's own nodes on each side.

    Attributes:
        hook: whether the package is installed, with its hook.
        before: whether base has declared assets and collected events.
        after: whether head has them.
    """

    hook: bool
    before: bool
    after: bool

    def __str__(self) -> str:
        there = {
            (False, False): "no assets",
            (True, True): "assets and events",
            (False, True): "readers and events are new",
        }
        return f"{'hook' if self.hook else 'no hook'}, {there[self.before, self.after]}"


SETTINGS: Final = (
    Setting(False, False, False),
    Setting(True, False, False),
    Setting(False, True, True),
    Setting(True, True, True),
    Setting(True, False, True),
)


@dataclass
class Answers:
    """What was said of each edit, by its project's name.

    Attributes:
        edits: the setting and the edit, in words.
        selected: the tests that `select` impacts.
        tried: those it runs only to see whether they compile.
        rows: of the tables, by table.
    """

    edits: dict[str, str] = field(default_factory=dict)
    selected: dict[str, set[str]] = field(default_factory=dict)
    tried: dict[str, set[str]] = field(default_factory=dict)
    rows: dict[str, list[Any]] = field(default_factory=lambda: {table: [] for table in TABLES})


def assets_of(project: Project, folder: Path) -> list[DeclaredAsset]:
    """The shop's declared assets, and those that a few events tell of."""
    declared = read_assets([SHOP / "ripple_assets.yml"])
    checked = {
        "dataQualityAssertions": {
            "assertions": [{"assertion": "row_count", "success": True, "column": None}]
        }
    }
    orders = next(n for n in project.nodes.values() if n.name == "fct_orders")
    read = dataset("duckdb", f"{orders.database}.{orders.schema}.{orders.alias}")
    read["inputFacets"] = checked
    events = [
        run_event("export", inputs=[read], outputs=[dataset(BROKER, "exported")]),
        run_event("check", integration="", run=2, inputs=[read]),
    ]
    file = folder / "events.ndjson"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    return with_collected(declared, read_events([file]), [project], {}).assets


def side_rows(
    project: Project,
    declared: list[DeclaredAsset],
    number: str,
    minute: int,
    keys: Types | None = None,
) -> Any:
    """What `load` writes of one side, as the project of this number."""
    context, seeds = ProjectContext(project), SeedFiles.by_their_values(project)
    analysis = analyse(project, own=True, seeds=seeds, context=context)
    analysis = with_test_outcomes(context, analysis, seeds, keys=keys)
    if declared:
        graph = DeclaredGraph(project, declared)
        analysis = AssetLineage(graph, analysis, None).analysis
        project = graph.acyclic
    snapshot = build_rows(project, analysis, max_closure=0, repeatable=False)
    id_ = f"{number}-{minute}"
    at = NOON + timedelta(minutes=minute)
    for table, rows in snapshot.rows.items():
        more = {"project_name": number, "generated_at": at} if table == "snapshots" else {}
        yield table, [replace(row, snapshot_id=id_, **more) for row in rows]


def keys_known(comparison: Comparison) -> dict[str, list[CatalogColumn]]:
    """Base's catalog without what has changed."""
    changed = {
        unique_id: {name.lower() for name in (*change.redefined, *change.added)}
        for unique_id, change in comparison.changed.items()
    }
    return {
        unique_id: [c for c in columns if c.name.lower() not in changed.get(unique_id, ())]
        for unique_id, columns in comparison.head.catalog.items()
    }


def make(
    world: World, setting: Setting, edits: Iterator[tuple[str, str, Any]], to: Answers
) -> None:
    """Answer edits by `select`, and keep the rows of both sides."""
    base = _with_its_catalog(world.project)
    folder = world.scratch
    folder.mkdir(parents=True, exist_ok=True)
    assets = assets_of(base, folder)
    if setting.before != setting.after:
        # What assets write is a change of its own, of which the tables' model says that it leaves it out.
        assets = [a for a in assets if not a.writes and not a.sql]
    then, now = (assets if there else [] for there in (setting.before, setting.after))
    before = [*side_rows(base, then, "base", 0)]
    for number, words, edit in edits:
        head = _with_its_catalog(world.head(edit))
        seen = analyse(head)
        changed = head
        if then != now:
            rewritten = declared_otherwise(base, head, then, now, lambda seen=seen: seen)
            changed = head.having(written_otherwise=rewritten) if rewritten else head
        comparison = compare(base, changed)
        impacted = {*impacted_tests(comparison)}
        to.edits[number] = f"{setting}: {words}"
        selected = {test.unique_id for test in select_from(comparison, facts=False).tests}
        to.selected[number], to.tried[number] = impacted, selected - impacted
        keys = keys_known(comparison)
        for table, rows in (*before, *side_rows(head, now, number, 1, keys)):
            for row in rows:
                more = {"project_name": number} if table == "snapshots" else {}
                own = row.snapshot_id.replace("base", number)
                to.rows[table].append(replace(row, snapshot_id=own, **more))


def _with_its_catalog(project: Project) -> Project:
    """The campaign writes a manifest of its own after `dbt docs generate`; what the catalog says holds."""
    return project.having(catalog_is_older=False)


def edits_of(world: World, seed: int, numbers: Iterator[int]) -> Iterator[tuple[str, str, Any]]:
    """Edits of each kind in turn."""
    mutator = Mutator(world, random.Random(seed))
    kinds = [kind for kind in KINDS if mutator.has(kind)]
    for number in numbers:
        kind = kinds[number % len(kinds)]
        mutator.random = random.Random(f"{seed} {number}")
        if (made := mutator.edit(kind)) is not None:
            yield f"edit_{number:04}", f"{kind} of {made[0]}", made[1]


def by_spark(folder: Path, answers: Answers) -> dict[str, set[str]]:
    """What the model answers of all edits, on a Spark of its own."""
    from dbt_ripple.spark.load import arrow_table, create_table
    from dbt_ripple.spark.session import get_session, local_environment

    local_environment(folder / "spark", short_lived=True)
    session = get_session()
    project = Folder(copy_shop(folder / "model"), folder / "compiled", output="spark")
    install(project, [str(REPOSITORY)])
    project.dbt("compile", "--select", "ripple_impacted_tests")
    sources = project.read().hidden
    raw = sources["source.dbt_ripple.ripple_raw.nodes"].schema
    session.sql(f"create schema if not exists {raw}")
    for table in (*TABLES, *RECORDED):
        name = f"{raw}.{table}"
        session.sql(
            create_table(name, table, "parquet").replace("partitioned by (snapshot_id)", "")
        )
        if rows := answers.rows.get(table):
            write(session, name, arrow_table(table, rows), folder / f"{table}.parquet")
    (text,) = (folder / "compiled" / "target" / "compiled").rglob("ripple_impacted_tests.sql")
    found: dict[str, set[str]] = {number: set() for number in answers.edits}
    for row in session.sql(text.read_text()).collect():
        found[row["project_name"]].add(row["unique_id"])
    session.stop()
    return found


def write(session: SparkSession, name: str, rows: Any, file: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(rows, file)
    columns = ", ".join(f"`{column}`" for column in rows.column_names)
    session.sql(f"insert into {name} ({columns}) select {columns} from parquet.`{file}`")


def answered(folder: Path, edits: int, seed: int) -> Answers:
    """The edits, by `select`."""
    answers = Answers()
    worlds: dict[bool, World] = {}
    for setting in SETTINGS:
        if setting.hook not in worlds:
            packages = [str(REPOSITORY)] if setting.hook else []
            worlds[setting.hook], _ = shop(folder / f"shop-{setting.hook}", packages)
        world = worlds[setting.hook]
        numbers = iter(range(SETTINGS.index(setting), edits, len(SETTINGS)))
        make(world, setting, edits_of(world, seed, numbers), answers)
    return answers


def wider_by_seeds(answers: Answers, in_tables: dict[str, set[str]]) -> list[str]:
    """The edits of seeds of which the tables have what `select` has, and more."""
    return [
        number
        for number, words in answers.edits.items()
        if ": seed of " in words and answers.selected[number] < in_tables[number]
    ]


def differences(answers: Answers, in_tables: dict[str, set[str]]) -> list[str]:
    """Each other edit of which the two say something else, in words."""
    said = []
    wider = wider_by_seeds(answers, in_tables)
    for number, words in answers.edits.items():
        here, there = answers.selected[number], in_tables[number]
        if here != there and number not in wider:
            more, less = (
                ", ".join(sorted(of)[:3]) or "none" for of in (there - here, here - there)
            )
            said.append(
                f"{number} ({words}): {len(there - here)} only in the tables, {more};"
                f" {len(here - there)} only by select, {less}"
            )
    return said


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="kept; by default a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        started = time.perf_counter()
        answers = answered(folder, options.edits, options.seed)
        loaded = time.perf_counter()
        in_tables = by_spark(folder, answers)
    ended = time.perf_counter()
    counted = Counter(words.partition(":")[0] for words in answers.edits.values())
    for setting, number in counted.items():
        print(f"{number:4} edits: {setting}")
    print(f"{sum(map(len, answers.selected.values())):,} tests impacted by {len(counted)} settings")
    print(f"{sum(map(bool, answers.selected.values()))} edits impact a test")
    print(f"{sum(map(len, answers.tried.values()))} more run only to see whether they compile")
    print(f"seconds: select and rows {loaded - started:.0f}, Spark {ended - loaded:.0f}")
    print(f"{len(wider_by_seeds(answers, in_tables))} edits of seeds have more tests in the tables")
    found = differences(answers, in_tables)
    print(f"{len(answers.edits)} edits, {len(found)} answered otherwise", *found, sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
