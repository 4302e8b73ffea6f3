"""What the collector counts, in the text format of Prometheus."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["CONTENT_TYPE_LATEST", "Metrics", "Served"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class Served:
    """What a server has taken so far."""

    accepted: int
    duplicates: int
    rejected: int


class Metrics:
    """The collector's counters; each instance has its own, from 0."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.accepted = Counter(
            "dbt_ripple_collect_accepted",
            "Events that were stored.",
            registry=self.registry,
        )
        self.duplicates = Counter(
            "dbt_ripple_collect_duplicates",
            "Events that were accepted and not stored, because they are in the store.",
            registry=self.registry,
        )
        self.rejected = Counter(
            "dbt_ripple_collect_rejected",
            "Requests, and events of a batch, that were refused.",
            ["reason"],
            registry=self.registry,
        )
        self.bytes = Counter(
            "dbt_ripple_collect_received_bytes",
            "Bytes of bodies, as they were sent.",
            registry=self.registry,
        )
        self.seconds = Histogram(
            "dbt_ripple_collect_request_seconds",
            "From a request's headers to its answer.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.commit_seconds = Histogram(
            "dbt_ripple_collect_commit_seconds",
            "Writing events to the disk, several requests together.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "dbt_ripple_collect_requests",
            "Requests that are being answered.",
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """All of them, as a scraper reads them."""
        return generate_latest(self.registry)

    def served(self) -> Served:
        """The counts of events in one."""
        accepted, duplicates, rejected = (
            sum(
                int(sample.value)
                for family in counter.collect()
                for sample in family.samples
                if sample.name.endswith("_total")
            )
            for counter in (self.accepted, self.duplicates, self.rejected)
        )
        return Served(accepted, duplicates, rejected)
