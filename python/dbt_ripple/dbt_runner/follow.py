"""`emit --follow`: dbt runs in this process, and its events are sent as they happen.

Nothing that is sent, or fails to be sent, changes what dbt does: events go through a queue, and a callback
raises nothing. Events that could not be sent live are made from run_results.json when dbt has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from dbt_ripple.dbt_runner.invoke import Dbt
from dbt_ripple.openlineage.invocation import Invocation
from dbt_ripple.openlineage.live_events import LiveEvents, result_of
from dbt_ripple.rendering.output import warn

_BEGIN = frozenset({"MainReportVersion"})
_NODE_BEGINS = frozenset({"NodeCompiling", "NodeExecuting"})


def follow(dbt: Dbt, manifest: Any, command: Collection[str], live: LiveEvents) -> Any:
    """Run a dbt command and send events while it runs.

    Args:
        dbt: on the project.
        manifest: dbt's own, as it parsed the project.
        command: what dbt is to do, with its arguments.
        live: sends the events.

    Returns:
        dbt's result.
    """
    wrong: list[str] = []

    def tell(event: Any) -> None:
        try:
            _send(live, event)
        except Exception as error:  # dbt would hang
            wrong.append(f"{type(error).__name__}: {error}")

    result = dbt.on(manifest, [tell]).attempt(*command, loud=True)
    if wrong:
        warn(f"not all could be told while dbt ran ({wrong[0]})")
    return result


def compiled_in(manifest: Any) -> Callable[[str], str | None]:
    """Says with which SQL a node runs: dbt writes it into the manifest that it runs with."""

    def compiled(unique_id: str) -> str | None:
        text = getattr(manifest.nodes.get(unique_id), "compiled_code", None)
        return text if isinstance(text, str) else None

    return compiled


def _send(live: LiveEvents, event: Any) -> None:
    name = event.info.name
    if name in _BEGIN:
        from dbt.version import get_installed_version

        version = get_installed_version().to_version_string(skip_matcher=True)
        live.began(Invocation(event.info.invocation_id, version, "", _time(event), arguments={}))
    elif name in _NODE_BEGINS:
        live.node_began(event.data.node_info.unique_id, _time(event))
    elif name == "NodeFinished":
        live.node_ended(result_of(event.data, event.info.invocation_id))


def _time(event: Any) -> datetime:
    moment: datetime = event.info.ts.ToDatetime()
    return moment.replace(tzinfo=UTC)
