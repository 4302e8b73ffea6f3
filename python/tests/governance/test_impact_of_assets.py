"""A change of an asset of which nobody has said which columns it has."""

from __future__ import annotations

import pytest
from hand_made import project

from dbt_ripple.artifacts.assets_file import parse_assets
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.hypothetical_changes import Change, Kind
from dbt_ripple.governance.impact import ImpactReport, impact
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

PIPELINE = """
assets:
  - id: table:raw
  - {id: job:clean, reads: [table:raw], writes: [table:clean]}
  - {id: table:clean}
  - {id: dashboard:sales, reads: [table:clean]}
  - {id: dashboard:rows, reads: [{node: table:raw, columns: []}]}
"""


def asked(text: str, *changes: Change, of: str = "asset.table.raw") -> ImpactReport:
    dbt = project()
    graph = DeclaredGraph(dbt, parse_assets(text, "a.yml"))
    return impact(dbt, graph.whole.nodes[of], changes, assets=graph)


@pytest.mark.parametrize("kind", ["drop", "rename", "retype"])
def test_who_names_no_columns_may_read_it(kind: Kind) -> None:
    to = {"drop": "", "rename": "total", "retype": "int"}[kind]
    report = asked(PIPELINE, Change(kind, "amount", to))
    affected = {a.unique_id: (a.severity, a.may_read) for a in report.affected_assets}
    # What reads the rows alone reads no column.
    assert affected == {
        "asset.job.clean": ("warning", True),
        "asset.table.clean": ("warning", True),
        "asset.dashboard.sales": ("warning", True),
    }
    assert all(a.affected_references == ["amount"] for a in report.affected_assets)
    assert report.decision == "CAUTION"
    assert "asset.job.clean" in report.opaque


def test_where_columns_are_known_another_name_is_a_mistake() -> None:
    listed = PIPELINE.replace("- id: table:raw", "- {id: table:raw, columns: [amount]}")
    assert asked(listed, Change("drop", "amount")).decision == "CAUTION"
    with pytest.raises(RippleError, match="amount"):
        asked(listed, Change("drop", "amuont"))
    # Somebody reads one by name: so it has that one.
    read = PIPELINE + "  - {id: dag:load, reads: [{node: table:raw, columns: [amount]}]}\n"
    report = asked(read, Change("drop", "amount"))
    assert report.decision == "BLOCKED"
    with pytest.raises(RippleError, match="amount"):
        asked(read, Change("drop", "amuont"))
