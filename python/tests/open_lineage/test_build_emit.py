"""`dbt-ripple build --emit` on a real Spark: the lineage models that it built are in the events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import eggs_project
import pytest
import schemas
from drive import on_shared_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[3]
PROFILE = """
eggs:
  target: dev
  outputs:
    dev: {type: spark, method: session, host: localhost, schema: dev, threads: 1}
"""


@pytest.mark.spark
def test_the_lineage_models_are_told_of(spark: SparkSession, tmp_path: Path) -> None:
    project = eggs_project.write(tmp_path / "eggs")
    for name in ("sold", "sold_later"):
        (project / "models" / f"{name}.sql").unlink()
    (project / "profiles.yml").write_text(PROFILE)
    (project / "packages.yml").write_text(json.dumps({"packages": [{"local": str(REPOSITORY)}]}))
    sent = tmp_path / "sent.ndjson"
    transport = {"type": "file", "log_file_path": str(sent), "append": True}
    done = on_shared_spark(
        *(spark, tmp_path / "made", project, "dbt deps", "dbt seed", "dbt-ripple build --emit"),
        OPENLINEAGE__TRANSPORT=json.dumps(transport),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    events = schemas.Events(schemas.read(sent.read_text()))
    assert f"sent {len(events)} events to the transport file" in done.stderr
    states = events.states()
    assert states["dbt-run-eggs"] == ["START", "COMPLETE"]
    assert states["model.dbt_ripple.ripple_dim_nodes"] == ["START", "COMPLETE"]
    assert not any(name.startswith(("model.eggs.", "seed.eggs.")) for name in states)
    event = events.of("model.dbt_ripple.ripple_dim_nodes")
    (output,) = event["outputs"]
    assert output["namespace"] == "spark://localhost"
    assert output["name"].count(".") == 1
    # Its materialization is the package's own, so it is not followed column by column; what it reads is known.
    (entry,) = event["job"]["facets"]["lineage"]["entries"]
    assert {i["name"] for i in entry["inputs"]} == {i["name"] for i in event["inputs"]} != set()
