"""A tracker of flows, for code that was written for a lineage plugin: only its import has to change.

    from dbt_ripple.session.tracker import lineage

    tracker = lineage()
    await tracker.capture_sql_lineage(sql="insert into b select x from a", transformation="Copy")

    @tracker.track(source="table:raw_events", target="table:session_metrics", transformation="Count")
    def compute(): ...

What is captured is written into ripple_assets.yml, which every command and tool reads.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.track import track
from dbt_ripple.session.project import Project
from dbt_ripple.session.registering import pipeline_of

_Function = TypeVar("_Function", bound=Callable[..., Any])
_LOG = logging.getLogger("dbt_ripple.track")


def lineage(folder: str | Path = ".") -> Tracker:
    """A tracker that writes into the ripple_assets.yml of a folder, which may be a dbt project's."""
    return Tracker(Path(folder))


class Tracker:
    """Writes what jobs and functions read and write."""

    def __init__(self, folder: Path) -> None:
        self._project = Project.load(folder, now=False)

    async def capture_sql_lineage(
        self,
        sql: str,
        transformation: str | None = None,
        *,
        id: str | None = None,
        dialect: str | None = None,
    ) -> dict[str, Any]:
        """Follow the SQL of a job, and register it.

        Returns:
            ``source_tables``, ``target_tables``, ``columns`` and ``id``, as ``dbt-ripple capture`` has them.

        Raises:
            RippleError: the SQL is not valid, or writes to nothing and has no id.
        """
        return self._project.capture(sql, id=id, dialect=dialect, description=transformation)

    async def register_flow(
        self, source: str, target: str, transformation: str | None = None
    ) -> dict[str, str]:
        """Register that data flows from one asset, or node of dbt, to another.

        Returns:
            What became of each, by id: added, shown again or back.

        Raises:
            RippleError: an id is not valid, or a name matches nothing.
        """
        return self._flow([source, target], [transformation])

    async def register_pipeline(
        self, name: str, steps: Sequence[str], transformations: Sequence[str | None] = ()
    ) -> dict[str, str]:
        """The same for several, each of which reads the one before it; `name` tags them."""
        labels = [*transformations] or [None] * (len(steps) - 1)
        return self._flow(steps, labels, tags=(name,))

    def _flow(
        self, steps: Sequence[str], labels: Sequence[str | None], **more: Any
    ) -> dict[str, str]:
        properties = {"description": labels, **more}
        return self._project.register(pipeline_of(steps, properties)).changed

    def track(
        self, source: str, target: str, transformation: str | None = None
    ) -> Callable[[_Function], _Function]:
        """Register the flow when a function is first called, and send its runs as `dbt_ripple.track` does.

        A flow that cannot be registered is logged, and the function runs all the same.
        """

        def decorate(function: _Function) -> _Function:
            tracked = track(inputs=[source], outputs=[target])(function)
            registered: list[bool] = []

            def register() -> None:
                if registered:
                    return
                registered.append(True)
                try:
                    self._flow([source, target], [transformation])
                except RippleError as error:
                    _LOG.warning("%s", error)

            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def called(*given: Any, **named: Any) -> Any:
                    register()
                    return await tracked(*given, **named)
            else:

                @functools.wraps(function)
                def called(*given: Any, **named: Any) -> Any:
                    register()
                    return tracked(*given, **named)

            return called  # type: ignore[return-value]

        return decorate
