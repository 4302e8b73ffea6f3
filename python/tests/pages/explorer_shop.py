"""A small shop with everything that the explorer's page can show, and an edit of it."""

from __future__ import annotations

from pathlib import Path

from hand_made import generic, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes import compare
from dbt_ripple.changes.diff import diff
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.pages.describe_project import describe_project
from dbt_ripple.pages.explorer import explorer_page
from dbt_ripple.pages.explorer_compare import Compared, compared
from dbt_ripple.pages.project_document import ProjectDocument
from dbt_ripple.selection.select import select_from

RAW, CUSTOMERS = "source.p.raw_orders", "source.p.raw_customers"
STG, FCT, MART = "model.p.stg_orders", "model.p.fct_orders", "model.p.revenue"
REGIONS, PYTHON, OLD = "model.p.regions", "model.p.forecast", "model.p.old_report"
REPORT = "exposure.p.report"

CATALOG = {
    RAW: ["id", "customer_id", "amount", "channel", "status"],
    CUSTOMERS: ["id", "email", "country"],
}
STG_SQL = "select id, customer_id, amount * 100 as cents, channel, status from s.raw_orders"
FCT_SQL = (
    "select o.id, o.cents, case when o.status = 'paid' then o.cents else 0 end as paid, c.email,"
    " c.country, o.channel from s.stg_orders o join s.raw_customers c on o.customer_id = c.id"
    " where o.cents > 0"
)


def nodes(
    stg: str = STG_SQL, fct: str = FCT_SQL, *, old: bool = True, email: str | None = "email"
) -> list[Node]:
    orders = node(RAW, columns={"id": "bigint", "amount": "decimal(12,2)", "channel": "string"})
    customers = node(CUSTOMERS, columns={"id": "bigint", "email": "string"})
    if email:
        customers.columns["email"].meta = {"pii": email}
    staging = replace(
        node(STG, stg, RAW, tags=["daily"], meta={"owner": "ann@x.example"}),
        fqn=["p", "staging", "stg_orders"],
    )
    certified = {"owner": "bob@x.example", "certified": True, "criticality": "tier1"}
    facts = replace(
        node(FCT, fct, STG, CUSTOMERS, tags=["daily", "finance"], meta=certified),
        fqn=["p", "marts", "fct_orders"],
    )
    mart = node(
        MART,
        "select country, sum(paid) as total, count(*) as orders from s.fct_orders group by country",
        FCT,
        meta={"owner": "bob@x.example"},
    )
    mart = replace(mart, fqn=["p", "marts", "revenue"])
    regions = node(REGIONS, "select distinct country from s.fct_orders", FCT)
    regions = replace(regions, fqn=["p", "marts", "regions"])
    forecast = node(PYTHON, "def model(dbt, session): ...", FCT, language="python")
    forecast = replace(forecast, fqn=["p", "marts", "forecast"])
    report = node(REPORT, None, MART, meta={"referenced_columns": ["revenue.total"]})
    test = generic(
        "not_null_total", "not_null", "select total from s.revenue where total is null", MART
    )
    found = [orders, customers, staging, facts, mart, regions, forecast, report, test]
    if old:
        found.append(node(OLD, "select id, cents from s.stg_orders", STG))
    return found


def shop(*found: Node) -> Project:
    return project(*(found or nodes()), catalog=CATALOG)


def documented(made: Project) -> ProjectDocument:
    return describe_project(made, analyse(made, expressions=True))


def compared_with(base: Project, head: Project, document: ProjectDocument) -> Compared:
    comparison = compare(base, head)
    return compared(
        *(comparison, diff(comparison), select_from(comparison), document, "main"),
        lambda: documented(base),
    )


def page(folder: Path, head: Project | None = None, base: Project | None = None) -> Path:
    """Write the page of a project, or of a change, and say where."""
    head = head or shop()
    document = documented(head)
    change = compared_with(base, head, document) if base is not None else None
    file = folder / "explorer.html"
    file.write_text(explorer_page(document, change), encoding="utf-8")
    return file
