"""The main job, end to end, on an embedded Spark: `make demo`.

A shop's dbt project is built, its artifacts are analysed and loaded into Spark tables, dbt builds
the lineage models over them, and three kinds of questions are answered. Then one expression is
edited, in a copy of the project, only the tests it can break are named, and the change is drawn as
a page (``explorer.html``). Metastore, warehouse,
the copy and logs stay in ``integration_tests/target/demo``.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).parent.resolve()
TARGET = PROJECT / "target" / "demo"
ARTIFACTS = TARGET / "dbt" / "ripple"
COPY = TARGET / "change"
PAGE = TARGET / "explorer.html"
EDITED = Path("models", "staging", "stg_orders.sql")

QUESTIONS = {
    "Who must be told before raw_orders changes?": """
select nodes.owner, count(*) as assets, concat_ws(', ', sort_array(collect_list(nodes.name))) as names
from shop_ripple.ripple_fct_node_closure as closure
join shop_ripple.ripple_dim_nodes as nodes
  on nodes.snapshot_id = closure.snapshot_id and nodes.unique_id = closure.descendant_id
where closure.ancestor_id = 'source.shop.raw.raw_orders' and closure.depth > 0
group by nodes.owner
order by assets desc, nodes.owner""",
    "Which columns pass on personal data as it is?": """
select columns.pii, parent.name as from_node, edges.parent_column, child.name as to_node, edges.child_column
from shop_ripple.ripple_fct_column_edges as edges
join shop_ripple.ripple_dim_columns as columns
  on columns.snapshot_id = edges.snapshot_id
  and columns.unique_id = edges.parent_id
  and columns.column_name = edges.parent_column
join shop_ripple.ripple_dim_nodes as parent
  on parent.snapshot_id = edges.snapshot_id and parent.unique_id = edges.parent_id
join shop_ripple.ripple_dim_nodes as child
  on child.snapshot_id = edges.snapshot_id and child.unique_id = edges.child_id
where columns.pii is not null and edges.subtype = 'IDENTITY' and child.resource_type != 'source'
order by columns.pii, from_node, to_node
limit 8""",
    "What is revenue_daily.total_usd made of?": """
select edges.type, edges.subtype, parent.name as from_node, edges.parent_column
from shop_ripple.ripple_fct_column_edges as edges
join shop_ripple.ripple_dim_nodes as parent
  on parent.snapshot_id = edges.snapshot_id and parent.unique_id = edges.parent_id
join shop_ripple.ripple_dim_nodes as child
  on child.snapshot_id = edges.snapshot_id and child.unique_id = edges.child_id
where child.name = 'revenue_daily' and edges.child_column = 'total_usd'
order by edges.type, edges.subtype, from_node, edges.parent_column""",
}


class Stages:
    """Says what is being done, and keeps how long it took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time one stage."""
        print(f"... {name}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n== {text}\n")


def dbt(*arguments: str, project: Path = PROJECT) -> None:
    """Run one dbt command in this process."""
    from dbt.cli.main import dbtRunner

    result = dbtRunner().invoke([*arguments, "--project-dir", str(project)])
    if not result.success:
        sys.exit(f"dbt {arguments[0]} failed: {result.exception or 'see the lines above'}")


def one_expression(sql: str) -> str:
    """The edit of the third act: what a pull request changes."""
    return edited(sql, "        orders.channel,", "        lower(orders.channel) as channel,")


def another_layout(sql: str) -> str:
    """The same query: a comment, a CTE under another name, joined in another layout."""
    sql = edited(sql, "with\n", "-- One row an order: the version loaded last.\nwith\n")
    sql = edited(
        sql,
        "    left join status_mapping\n        on lower(trim(orders.status)) = ",
        "    left join status_mapping on lower(trim(orders.status)) = ",
    )
    return sql.replace("status_mapping as (", "mapping as (").replace(
        "left join status_mapping on", "left join mapping as status_mapping on"
    )


def edited(sql: str, old: str, new: str) -> str:
    """The text with one passage replaced, which has to be there once."""
    if sql.count(old) != 1:
        sys.exit(f"the demo edits {EDITED}, which no longer holds {old.strip()!r} once")
    return sql.replace(old, new)


def change(make: Callable[[str], str]) -> None:
    """Write the copy's edited model, show the edit, and compile the copy."""
    before = (PROJECT / EDITED).read_text()
    after = make(before)
    (COPY / EDITED).write_text(after)
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        str(EDITED),
        str(EDITED),
        n=0,
        lineterm="",
    )
    print("\n".join(lines), end="\n\n")
    dbt("compile", "--target-path", str(COPY / "target"), project=COPY)


def what_to_test(stages: Stages) -> None:
    """The third act: what an edit of one expression can break, and what a new layout can."""
    from dbt_ripple.cli.explain import explain
    from dbt_ripple.cli.explorer import explorer
    from dbt_ripple.cli.select import select

    # What is kept of base, so that who loads the sources is compared, too.
    shutil.copy(PROJECT / "ripple_assets.yml", ARTIFACTS)
    sides = ["--state", str(ARTIFACTS), "--project-dir", str(COPY)]
    # Everything has just passed here; in CI, run_results.json in the state says so.
    asked = [*sides, "--target-path", "target", "--assume-passed"]
    shutil.copytree(
        PROJECT,
        COPY,
        symlinks=True,
        ignore=shutil.ignore_patterns("target", "logs", "*.md"),
    )
    heading(
        "(d) One expression is edited: which tests can it break?  dbt-ripple select --state DIR"
    )
    with stages("compile the edited copy and select its tests"):
        change(one_expression)
        select.main(asked, standalone_mode=False)
    heading("Why that one?  dbt-ripple explain TEST --state DIR")
    with stages("explain a test"):
        explain.main(["unique_together_revenue_by_region", *asked], standalone_mode=False)
    heading("The lineage and this change as a page  dbt-ripple explorer --state DIR")
    with stages("write the explorer's page"):
        explorer.main([*sides, "--target-path", "target", "-o", str(PAGE)], standalone_mode=False)
        picture()
    heading("(e) The same file in another layout instead")
    with stages("compile the other copy and select its tests"):
        change(another_layout)
        select.main(asked, standalone_mode=False)


def picture() -> None:
    """Take the picture of the page that README shows, where there is a browser (`make picture`)."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return
    names = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        for path in dict.fromkeys((None, found)):
            try:
                browser = playwright.chromium.launch(executable_path=path)
            except Error:
                continue
            page = browser.new_page(viewport={"width": 1400, "height": 760}, color_scheme="light")
            page.goto(PAGE.as_uri())
            page.wait_for_selector("#app[data-ready]")
            page.screenshot(path=PAGE.with_suffix(".png"))
            browser.close()
            return


def main() -> None:
    """Run the demo."""
    stages = Stages()
    # Metastore and warehouse are wiped together or not at all; a second demo starts afresh.
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    os.environ.update(
        DBT_PROFILES_DIR=str(PROJECT),
        DBT_TARGET_PATH=str(TARGET / "dbt"),
        DBT_LOG_PATH=str(TARGET / "logs"),
        DBT_QUIET="true",  # errors only on the screen; the rest is in the log
        DBT_SEND_ANONYMOUS_USAGE_STATS="false",
        RIPPLE_SCHEMA="shop",
        RIPPLE_FILE_FORMAT="parquet",
    )
    os.chdir(TARGET)

    from dbt_ripple.cli.build import build
    from dbt_ripple.cli.trace import trace
    from dbt_ripple.spark.session import get_session, local_environment

    local_environment(TARGET / "spark", short_lived=True)
    with stages("start Spark"):
        spark = get_session()
    with stages("install the dbt package (dbt deps)"):
        dbt("deps")
    with stages("build the shop with dbt"):
        dbt("build", "--exclude", "package:dbt_ripple")
    heading("dbt-ripple build")
    with stages("dbt-ripple build: compile, analyse, load, build the lineage models"):
        build.main(
            ["--project-dir", str(PROJECT), "--target-path", str(TARGET / "dbt")],
            standalone_mode=False,
        )
    at = ["--project-dir", str(PROJECT), "--target-path", str(ARTIFACTS)]
    heading("(a) What is downstream of raw_orders?  dbt-ripple trace raw_orders")
    with stages("trace"):
        trace.main(["raw_orders", *at], standalone_mode=False)
        heading(
            "And who loads it?  ripple_assets.yml says it: dbt-ripple trace raw_orders --direction upstream"
        )
        trace.main(["raw_orders", "--direction", "upstream", *at], standalone_mode=False)
        heading(
            "(b) What breaks if raw_orders.order_total is renamed?"
            "  dbt-ripple trace raw_orders.order_total"
        )
        trace.main(["raw_orders.order_total", *at], standalone_mode=False)
    heading("(c) The lineage tables, in SQL")
    with stages("three SQL queries"):
        for question, sql in QUESTIONS.items():
            print(f"-- {question}{sql};")
            spark.sql(sql).show(20, truncate=90)
    what_to_test(stages)
    heading("How long it took")
    for name, seconds in stages.seconds.items():
        print(f"{seconds:7.1f} s  {name}")
    print("\nLeft out: the snapshot and its history, which need Delta Lake (the tests build them).")
    where = ARTIFACTS.relative_to(PROJECT.parent)
    print(
        f"""
Where to go next
  {PAGE.relative_to(PROJECT.parent)}: open it in a browser; it needs no server
  .venv/bin/dbt-ripple analyze --target-path {where}
  .venv/bin/dbt-ripple trace revenue_daily.total_usd --direction upstream --target-path {where}
  .venv/bin/dbt-ripple impact api:checkout --drop amount_cents --project-dir {PROJECT.name} --target-path {ARTIFACTS.relative_to(PROJECT)}
  docs/package.md: the same in your own project
"""
    )


if __name__ == "__main__":
    main()
