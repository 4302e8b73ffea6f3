"""The Python of docs/track.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import schemas
from test_track import Sent, sent

__all__ = ["sent"]

PAGE = Path(__file__).parents[3] / "docs" / "track.md"


def test_the_examples_run(sent: Sent, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    events: schemas.Events = sent.events()
    assert [state for _, state in sent.states()] == ["START", "COMPLETE"] * 3
    (output,) = events.of("load_orders")["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 42
    (gold,) = events.of("build_revenue")["outputs"]
    assert set(gold["facets"]["columnLineage"]["fields"]) == {"total_revenue", "date", "buyer"}


@pytest.mark.parametrize("place", ["s3://lake/silver/orders", "/data/orders.parquet"])
def test_the_table_of_datasets(place: str) -> None:
    from dbt_ripple import Dataset

    row = next(line for line in PAGE.read_text("utf-8").splitlines() if f'`"{place}"`' in line)
    _, _, namespace, name, _ = (cell.strip(" `") for cell in row.split("|"))
    dataset = Dataset.of(place)
    assert (dataset.namespace, dataset.name) == (namespace, name)
