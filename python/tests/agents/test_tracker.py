"""A tracker of flows: code written for a lineage plugin runs with another import, and commands see what it did."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from dbt_ripple import Project, RippleError
from dbt_ripple.session.tracker import lineage


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")


def test_sql_is_captured() -> None:
    tracker = lineage()
    result = asyncio.run(
        tracker.capture_sql_lineage(
            sql="insert into orders_clean select id, cents / 100.0 as usd from raw_orders where cents > 0",
            transformation="Clean",
        )
    )
    assert (result["source_tables"], result["target_tables"]) == (["raw_orders"], ["orders_clean"])
    (above,) = [
        r for r in Project.load(".")["table:orders_clean.usd"].upstream() if r.column == "cents"
    ]
    assert above.name == "raw_orders"


def test_a_function_is_a_flow_once_it_is_called(caplog: pytest.LogCaptureFixture) -> None:
    tracker = lineage()

    @tracker.track(
        source="table:raw_events", target="table:metrics", transformation="Count sessions"
    )
    async def compute(number: int) -> int:
        """It counts."""
        return number + 1

    @tracker.track(source="nonsense", target="table:metrics")
    def fails(number: int) -> int:
        raise ValueError(number)

    assert not Path("ripple_assets.yml").exists()
    assert asyncio.run(compute(1)) == 2 and asyncio.run(compute(2)) == 3
    assert compute.__doc__ == "It counts."
    assert [r.name for r in Project.load(".")["table:raw_events"].downstream()] == ["metrics"]
    assert "Count sessions" in Path("ripple_assets.yml").read_text()
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="7"):
        fails(7)
    assert "nonsense" in caplog.text


def test_a_pipeline() -> None:
    tracker = lineage()
    steps = ["api:crm", "table:raw", "table:clean"]
    changed = asyncio.run(tracker.register_pipeline("nightly", steps, ["pulled", "cleaned"]))
    assert changed == dict.fromkeys(steps, "added")
    assert asyncio.run(tracker.register_flow("table:clean", "model:churn")) == {
        "table:clean": "shown again",
        "model:churn": "added",
    }
    assert [r.name for r in Project.load(".")["api:crm"].downstream()] == ["raw", "clean", "churn"]
    with pytest.raises(RippleError, match="did you mean table"):
        asyncio.run(tracker.register_flow("tabel:a", "table:b"))
