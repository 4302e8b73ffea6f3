"""What Airflow, Spark and a producer behind Kafka really send is taken, all of it."""

from __future__ import annotations

from typing import Any

import pytest
from real_programs.warehouse import Warehouse
from served_collector import stored

pytestmark = [pytest.mark.matrix, pytest.mark.slow]
Event = dict[str, Any]


def of_job(events: list[Event], name: str, namespace: str) -> list[Event]:
    return [e for e in events if e["job"] == {**e["job"], "namespace": namespace, "name": name}]


def last(events: list[Event], name: str, namespace: str) -> Event:
    found = of_job(events, name, namespace)
    assert found, f"nothing of {name}"
    return max(found, key=lambda e: e["eventTime"])


def names(datasets: list[Event]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


def fields_of(event: Event) -> dict[str, set[str]]:
    """Of the only output its columns, each with the columns that it is made of."""
    (output,) = event["outputs"]
    lineage = output["facets"]["columnLineage"]["fields"]
    return {to: {f["field"] for f in of["inputFields"]} for to, of in lineage.items()}


def test_airflow(airflow: Any, warehouse: Warehouse) -> None:
    assert airflow.refused == 0
    events = stored(airflow.store)
    here = warehouse.namespace
    loaded = last(events, "load_orders.load_raw_orders", "airflow")
    assert loaded["eventType"] == "COMPLETE"
    assert names(loaded["inputs"]) == [(here, "shop.landing.orders")]
    assert names(loaded["outputs"]) == [(here, "shop.raw.raw_orders")]
    # The provider calls a column as the SELECT does, not as the INSERT's list has it.
    made = {to: of for to, of in fields_of(loaded).items() if to.startswith("_")}
    assert made == {"_0": {"amount_cents"}, "_1": {"shipping_cents"}}
    (schema,) = [output["facets"]["schema"]["fields"] for output in loaded["outputs"]]
    assert "order_total" in {field["name"] for field in schema}
    built = last(events, "daily_revenue_report.build", "airflow")
    assert names(built["inputs"]) == [(here, "shop.analytics.fct_orders")]
    assert names(built["outputs"]) == [(here, "shop.reports.daily_revenue")]
    assert fields_of(built) == {"order_date": {"order_date"}, "revenue": {"order_total"}}
    # The task's parent is the DAG's run, which says how the DAG ended.
    dag = last(events, "daily_revenue_report", "airflow")
    assert dag["eventType"] == "COMPLETE"
    assert built["run"]["facets"]["parent"]["run"]["runId"] == dag["run"]["runId"]
    # The START does not know yet what it makes.
    (begun,) = [
        e
        for e in of_job(events, "daily_revenue_report.build", "airflow")
        if e["eventType"] == "START"
    ]
    assert begun["outputs"] == []


def test_an_airflow_dag_that_fails(airflow: Any) -> None:
    events = stored(airflow.store)
    failed = last(events, "broken_export.export", "airflow")
    assert failed["eventType"] == "FAIL"
    assert "no_such_column" in failed["run"]["facets"]["errorMessage"]["message"]
    assert last(events, "broken_export", "airflow")["eventType"] == "FAIL"


def test_dbt_between_two_dags(airflow: Any, warehouse: Warehouse) -> None:
    """dbt's own events, by `emit`, name the tables as Airflow does."""
    events = stored(airflow.store)
    built = last(events, "model.shop.fct_orders", "dbt")
    assert names(built["outputs"]) == [(warehouse.namespace, "shop.analytics.fct_orders")]
    staged = last(events, "model.shop.stg_orders", "dbt")
    assert names(staged["inputs"]) == [(warehouse.namespace, "shop.raw.raw_orders")]


def test_spark_on_postgres(spark_jobs: Any, warehouse: Warehouse) -> None:
    assert spark_jobs.refused == 0
    events = stored(spark_jobs.store)
    here = warehouse.namespace
    job = "customer_ltv.execute_save_into_data_source_command.ml_customer_ltv"
    saved = last(events, job, "spark")
    assert saved["eventType"] == "COMPLETE"
    assert names(saved["inputs"]) == [(here, "shop.analytics.fct_orders")]
    assert names(saved["outputs"]) == [(here, "shop.ml.customer_ltv")]
    assert fields_of(saved) == {
        "customer_id": {"customer_id"},
        "ltv": {"order_total", "shipping_cost"},
    }
    # What only decides which rows count stands beside the columns, whatever its kind is called.
    (output,) = saved["outputs"]
    rows = {each["field"] for each in output["facets"]["columnLineage"]["dataset"]}
    assert rows == {"channel", "customer_id"}
    application = last(events, "customer_ltv", "spark")
    assert saved["run"]["facets"]["parent"]["run"]["runId"] == application["run"]["runId"]
    assert warehouse.server.run("select sum(ltv) from ml.customer_ltv") == "74.00"


def test_spark_on_its_own_tables(spark_jobs: Any) -> None:
    """Datasets are folders there; the table's name is a symlink."""
    events = stored(spark_jobs.store)
    job = "train_churn.execute_create_data_source_table_as_select_command.ml_order_frequency"
    made = last(events, job, "spark")
    (output,), (read,) = made["outputs"], made["inputs"]
    assert [output["namespace"], read["namespace"]] == ["file", "file"]
    for dataset, table in ((output, "ml.order_frequency"), (read, "shop.fct_orders")):
        (link,) = dataset["facets"]["symlinks"]["identifiers"]
        assert (link["name"], link["type"]) == (table, "TABLE")
    assert fields_of(made)["days_between"] == {"order_date", "previous_order_date"}
    rows = {each["field"] for each in output["facets"]["columnLineage"]["dataset"]}
    assert rows == {"is_cancelled", "payment_state", "customer_id"}


def test_kafka(kafka_topic: Any, warehouse: Warehouse) -> None:
    assert kafka_topic.said.startswith("stored 4 events in ")
    assert kafka_topic.said.endswith("; 0 were there before, 0 refused")
    events = stored(kafka_topic.store)
    scored = last(events, "score_customers", "scoring")
    assert names(scored["inputs"]) == [(warehouse.namespace, "shop.ml.customer_ltv")]
    synced = last(events, "sync_contacts", "scoring")
    assert names(synced["inputs"]) == names(scored["outputs"])
    assert names(synced["outputs"]) == [("crm", "contacts")]
