"""A third producer, which has a broker and no HTTP: scores of customers go into a topic, and from there into the CRM.

Run with openlineage-python and its Kafka transport, by itself: no part of dbt_ripple is installed there.
"""

import sys
from datetime import UTC, datetime

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import column_lineage_dataset, schema_dataset
from openlineage.client.transport.kafka import KafkaConfig, KafkaTransport
from openlineage.client.uuid import generate_new_uuid

brokers, topic, warehouse = sys.argv[1:]
config = KafkaConfig(config={"bootstrap.servers": brokers}, topic=topic, flush=True)
client = OpenLineageClient(transport=KafkaTransport(config))
customers = (warehouse, "shop.ml.customer_ltv")
scores = (f"kafka://{brokers}", "customer_scores")
contacts = ("crm", "contacts")


def schema(*names):
    fields = [schema_dataset.SchemaDatasetFacetFields(name, "string", fields=[]) for name in names]
    return schema_dataset.SchemaDatasetFacet(fields)


def lineage(source, columns):
    made = column_lineage_dataset
    return made.ColumnLineageDatasetFacet(
        fields={
            to: made.Fields(
                [
                    made.InputField(
                        *source, of, [made.Transformation("DIRECT", "TRANSFORMATION", "", False)]
                    )
                ]
            )
            for to, of in columns.items()
        }
    )


def run(name, source, target, columns):
    job = Job("scoring", name)
    of = Run(str(generate_new_uuid()))
    outputs = [
        OutputDataset(
            *target, facets={"schema": schema(*columns), "columnLineage": lineage(source, columns)}
        )
    ]
    for state in (RunState.START, RunState.COMPLETE):
        at = datetime.now(UTC).isoformat()
        client.emit(
            RunEvent(
                eventTime=at,
                run=of,
                job=job,
                eventType=state,
                inputs=[InputDataset(*source)],
                outputs=outputs,
            )
        )


run("score_customers", customers, scores, {"customer_id": "customer_id", "score": "ltv"})
run("sync_contacts", scores, contacts, {"contact": "customer_id", "rating": "score"})
client.close()
