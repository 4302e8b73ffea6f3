"""`register --from-mlflow`, on a registry that MLflow itself has written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hand_made import LISTED, node, orders, project

from dbt_ripple.artifacts.assets_file import parse_assets
from dbt_ripple.cli.register import _of_mlflow
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.asset_edits import registered
from dbt_ripple.governance.mlflow_models import dataset, registrations_of
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph


@pytest.mark.parametrize(
    ("source", "schema", "names", "columns", "is_table"),
    [
        (
            '{"delta_table_name": "ml.features"}',
            '{"mlflow_colspec": [{"type": "long", "name": "id"}]}',
            ["ml.features", "train"],
            ["id"],
            True,
        ),
        ('{"uri": "s3://lake/train.csv"}', "not json", ["train"], None, False),
        ("", '{"mlflow_tensorspec": {}}', ["train"], None, False),
    ],
)
def test_what_is_said_of_a_dataset(
    source: str, schema: str, names: list[str], columns: list[str] | None, is_table: bool
) -> None:
    logged = dataset(SimpleNamespace(name="train", source=source, schema=schema))
    assert (logged.names, logged.columns, logged.is_table) == (names, columns, is_table)


def test_without_mlflow_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(RippleError, match="mlflow-skinny is not installed"):
        registrations_of("sqlite:///x.db", lambda name: None, lambda name: None)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A registry with three models: churn in two versions, one of a file, and one without a version."""
    mlflow: Any = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    entities: Any = pytest.importorskip("mlflow.entities")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlruns").as_uri()
    client = mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)
    experiment = client.create_experiment("training")

    def trained(model: str, name: str, source: str, *columns: str) -> None:
        """A run that logs a dataset, as `mlflow.log_input` does, and the version it makes."""
        schema = {"mlflow_colspec": [{"type": "double", "name": c} for c in columns]}
        logged = entities.Dataset(
            name, "-".join(columns), "local", source, json.dumps(schema), "{}"
        )
        run = client.create_run(experiment).info.run_id
        client.log_inputs(run, [entities.DatasetInput(logged, [])])
        client.create_model_version(model, f"runs:/{run}/model", run)

    tags = {"owner": "Data Science"}
    client.create_registered_model("churn", tags=tags, description="Who leaves.")
    trained("churn", "fct", "{}", "id", "amount")
    trained("churn", "fct", "{}", "id", "made_up")
    client.create_registered_model("of a file")
    trained("of a file", "my file", '{"uri": "data/my file.csv"}', "x")
    client.create_registered_model("empty")
    return uri


def test_models_and_what_they_were_trained_on(registry: str, tmp_path: Path) -> None:
    shop = project(
        orders(),
        node("model.p.fct", "select id, amount from `s`.`orders`", "source.p.raw.orders"),
        catalog=LISTED,
    )
    analysis = analyse(shop)
    registrations = _of_mlflow(registry, ["ml"], DeclaredGraph(shop, []), analysis)
    by_id = {one.id: one for one in registrations}
    assert list(by_id) == ["model:churn", "model:empty", "file:my_file", "model:of_a_file"]
    churn = by_id["model:churn"]
    assert (churn.source_ref, churn.owner, churn.description) == (
        "models:/churn/2",
        "Data Science",
        "Who leaves.",
    )
    assert churn.reads == ["fct"]  # it has a column that fct has not: it was made of it
    assert by_id["file:my_file"].source_ref == "data/my file.csv"
    assert by_id["model:of_a_file"].reads == [{"node": "file:my_file", "columns": ["x"]}]

    import mlflow  # type: ignore[import-not-found,unused-ignore]

    client = mlflow.MlflowClient(tracking_uri=registry, registry_uri=registry)
    client.set_registered_model_alias("churn", "champion", "1")
    registrations = _of_mlflow(registry, ["ml"], DeclaredGraph(shop, []), analysis)
    (churn,) = (one for one in registrations if one.id == "model:churn")
    assert churn.reads == [{"node": "fct", "columns": ["id", "amount"]}]

    edited = registered(tmp_path / "ripple_assets.yml", registrations, shop, analysis)
    edited.write()
    graph = DeclaredGraph(shop, parse_assets(edited.text, "f.yml"))
    seen = AssetLineage(graph, analysis).analysis.nodes["asset.model.churn"]
    assert (seen.status, seen.columns) == ("analysed", ["id", "amount"])
    again = registered(
        tmp_path / "ripple_assets.yml",
        _of_mlflow(registry, ["ml"], graph, analysis),
        shop,
        analysis,
    )
    assert set(again.changed.values()) == {"shown again"}


def test_a_registry_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    with pytest.raises(RippleError, match="MLflow cannot be read"):
        registrations_of("no-such-scheme://x", lambda name: None, lambda name: None)
