"""`emit --follow`: compile and analyse, then run dbt in this process and send its events as they happen.

Nothing that is sent, or fails to be sent, changes what dbt does: events go through a queue, and a callback
raises nothing. Events that could not be sent live are made from run_results.json when dbt has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.artifacts import read_project
from dbt_ripple.cli.emit import EventSettings, analysis_of
from dbt_ripple.dbt_runner.invoke import Dbt, short, why
from dbt_ripple.dbt_runner.profile import adapter_connection
from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.background import Background
from dbt_ripple.openlineage.client import Sender
from dbt_ripple.openlineage.invocation import Invocation, read_invocation
from dbt_ripple.openlineage.live_events import LiveEvents, result_of
from dbt_ripple.rendering.output import count, warn
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.openlineage.dataset_names import DatasetNames

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


ENDS: Final = 300.0
"""Seconds in which what is left has to be sent when dbt has ended."""


def run_and_send(
    command: tuple[str, ...],
    folder: Path,
    settings: EventSettings,
    sender: Sender,
    cache: Cache | None,
    threads: int | None,
) -> tuple[int, int]:
    """Run a dbt command and send its events while it runs.

    The project is compiled before, into the folder ``ripple`` of the target folder, so that a model's
    lineage is known when it ends.

    Returns:
        How many events were sent, and the exit code: 0, or 1 where dbt failed.

    Raises:
        RippleError: dbt could not begin.
    """
    folder = folder.resolve()
    dbt = Dbt(settings.project_dir.resolve(), folder, settings.options)
    parsed = folder / "partial_parse.msgpack"
    again = ["--partial-parse-file-path", str(parsed)] if parsed.is_file() else []
    compiled = dbt.attempt("compile", *again, target_path=folder / "ripple")
    manifest = dbt("parse").result
    if not compiled.success:
        warn(f"dbt cannot compile this before it runs ({why(compiled)}); lineage comes at its end")
    target = open_target(folder / "ripple" if compiled.success else folder, cache, threads)
    project = target.project
    names = settings.names_of(project, adapter_connection() if settings.datasets is None else None)
    # Made now: dbt waits for whoever is called back.
    events = settings.run_events(project, analysis_of(target), names, None, project.nodes)
    queue = Background(1_000_000, lambda: sender.send)
    live = LiveEvents(events, compiled_in(manifest), queue.put)
    try:
        result = follow(dbt, manifest, command, live)
    except BaseException:
        live.aborted("dbt was interrupted")
        queue.flush(ENDS)
        raise
    if not live.has_begun:
        raise RippleError(
            f"`dbt {short(command)}` failed ({why(result)})",
            str(settings.project_dir),
            "mend that and try again",
        )
    _send_remaining(folder, settings, names, live, cache, threads)
    if not queue.flush(ENDS):
        warn(f"{sender.where} takes too long: not all events were sent")
    sender.close()
    if queue.dropped:
        warn(
            f"{count(queue.dropped, 'event')} could not be sent to {sender.where};"
            " `dbt-ripple emit` sends all of them again"
        )
    return queue.sent, 0 if result.success else 1


def _send_remaining(
    folder: Path,
    settings: EventSettings,
    names: DatasetNames,
    live: LiveEvents,
    cache: Cache | None,
    threads: int | None,
) -> None:
    """What was not known while dbt ran: nodes that ran other SQL, hooks, how all of it ended."""
    after = read_project(folder)
    results = after.run_results
    if not (folder / "run_results.json").is_file() or not live.is_of(
        {result.invocation_id for result in results}
    ):
        live.aborted("dbt ended without results")
        return
    invocation = read_invocation(folder, results)
    before = live.project
    # The compiled SQL of what ran, and of the rest that of before.
    texts = {
        unique_id: node.compiled_code
        for unique_id, node in after.nodes.items()
        if node.compiled_code is not None and unique_id in before.nodes
    }
    project = before.with_compiled(texts)
    left = [result for result in results if result.unique_id not in live.ended]
    analysis = None
    if any(result.unique_id.startswith(("model.", "snapshot.")) for result in left):
        from dbt_ripple.graph.target_folder import TargetFolder

        analysis = analysis_of(TargetFolder.of(project, cache, processes=threads))
    ran = [result.unique_id for result in left]
    live.send_remaining(
        settings.run_events(project, analysis, names, invocation, ran), left, results
    )
