"""Events of a run of dbt while it runs, from what dbt tells of it node by node.

They are those that `run_events` makes of the artifacts afterwards, with the same run ids. The column lineage
of a model is known when it ends only if its SQL is the one that was analysed before: a model that looks into
the warehouse, or that asks `is_incremental()`, may run another one. Its end is then sent when dbt has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.artifacts import Node, RunResult, Timing
from dbt_ripple.openlineage.facets import TESTS
from dbt_ripple.openlineage.invocation import Invocation
from dbt_ripple.openlineage.project_facts import DID_NOT_RUN
from dbt_ripple.openlineage.run_events import RunEvents

if TYPE_CHECKING:
    from dbt_ripple.openlineage.client import Event

_NEVER_RUN: Final = frozenset({"exposure", "saved_query", "metric", "semantic_model"})
_FOLLOWED: Final = frozenset({"model", "snapshot"})


class LiveEvents:
    """What dbt tells, as events.

    Args:
        events: made of what was known before the run; they get their invocation when it begins.
        compiled: the SQL with which a node runs; None where it is not known.
        put: has an event made and sent; it may not raise.

    Attributes:
        ended: the nodes whose end was told.
    """

    def __init__(
        self,
        events: RunEvents,
        compiled: Callable[[str], str | None],
        put: Callable[[Callable[[], Event]], None],
    ) -> None:
        self.ended: set[str] = set()
        self.project = events.project
        self._events = events
        self._compiled = compiled
        self._put = put
        self._lock = threading.Lock()
        self._started: dict[str, Node] = {}
        self._invocation: Invocation | None = None

    @property
    def has_begun(self) -> bool:
        """Whether dbt began to run nodes, or would have."""
        return self._invocation is not None

    def is_of(self, invocations: Collection[str]) -> bool:
        """Whether these are the ids of the invocation that was followed."""
        return self._invocation is not None and {self._invocation.invocation_id} >= {*invocations}

    def began(self, invocation: Invocation) -> None:
        """Dbt has begun."""
        with self._lock:
            if self._invocation is not None:
                return
            self._invocation = invocation
            self._events = events = self._events.of_invocation(invocation)
        self._put(events.started)

    def node_began(self, unique_id: str, at: datetime) -> None:
        """A node runs: it was not skipped."""
        node, events = self.project.nodes.get(unique_id), self._events
        if node is None or not self.has_begun or node.is_ephemeral:
            return
        with self._lock:
            if unique_id in self._started or node.resource_type in _NEVER_RUN:
                return
            self._started[unique_id] = node
        self._put(lambda: events.node_started(node, at))

    def node_ended(self, result: RunResult) -> None:
        """A node has ended; what is not known of it yet is left for later."""
        unique_id, events = result.unique_id, self._events
        node = self._started.get(unique_id)
        if node is None or result.status in DID_NOT_RUN:
            return
        ran = self._compiled(unique_id)
        if node.resource_type in _FOLLOWED and (ran is None or ran != node.compiled_code):
            return
        if node.resource_type in TESTS and ran is not None and ran != node.compiled_code:
            node = msgspec.structs.replace(node, compiled_code=ran)
        ended = node
        self.ended.add(unique_id)
        self._put(lambda: events.node_ended(ended, result))

    def send_remaining(
        self, events: RunEvents, left: list[RunResult], results: list[RunResult]
    ) -> None:
        """Send the events that could be made only when dbt had ended.

        Args:
            events: made of the artifacts.
            left: the results whose end was not sent yet.
            results: all of them.
        """
        nodes = events.project.nodes
        events = events.at_the_time_of(self._events)
        for result in left:
            node = nodes.get(result.unique_id)
            if node is None or result.status in DID_NOT_RUN:
                continue
            if result.unique_id not in self._started:
                self._put(partial(events.node_started, node, result.started_at))
            self.ended.add(result.unique_id)
            self._put(partial(events.node_ended, node, result))
        self._put(partial(events.ended, results))

    def aborted(self, why: str) -> None:
        """Dbt ended, and nothing tells how."""
        if not self.has_begun:
            return
        events = self._events
        for unique_id, node in self._started.items():
            if unique_id not in self.ended:
                self._put(partial(events.node_aborted, node, why))
        self._put(partial(events.ended, [], why))


def result_of(data: Any, invocation_id: str) -> RunResult:
    """The result in dbt's event ``NodeFinished``, as run_results.json has it.

    Args:
        data: of the event, a protobuf message.
        invocation_id: of dbt.
    """
    from google.protobuf.json_format import MessageToDict

    run = MessageToDict(data.run_result, preserving_proto_field_name=True)
    timing = [
        Timing(
            name=phase.get("name", ""),
            started_at=_moment(phase.get("started_at")),
            completed_at=_moment(phase.get("completed_at")),
        )
        for phase in run.get("timing_info", ())
    ]
    status = run.get("status", "")
    response = dict(run.get("adapter_response") or {})
    rows = response.get("rows_affected")  # all numbers of such a message are floats
    if isinstance(rows, (str, float)):
        response["rows_affected"] = int(float(rows))
    failures = run.get("num_failures")
    is_test = status in ("pass", "fail", "warn")
    return RunResult(
        unique_id=data.node_info.unique_id,
        invocation_id=invocation_id,
        status=status,
        execution_time=run.get("execution_time"),
        timing=timing,
        message=run.get("message") or None,
        failures=int(failures or 0) if is_test else None,
        adapter_response=response,
    )


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or UTC)
