"""One invocation of dbt, as run_results.json tells of it: its id, its times, who started it.

The id of a run is a UUID (version 5) of the invocation's id and the node's, so it is the same
whenever events are made of one invocation, live or afterwards. The invocation's own run has dbt's
own id.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts.project import BUILDS_NOTHING, RunResult, as_utc
from dbt_ripple.errors import RippleError

_RUNS: Final = uuid.UUID("6d0a9f0e-6a56-5c0b-9d3a-0f6c5d1f2b17")
"""The namespace of our run ids."""


class _RunResultsMetadata(msgspec.Struct):
    dbt_version: str | None = None
    generated_at: datetime | None = None
    invocation_id: str = ""
    invocation_started_at: datetime | None = None


class _RunResultsFile(msgspec.Struct):
    metadata: _RunResultsMetadata = msgspec.field(default_factory=_RunResultsMetadata)
    elapsed_time: float = 0.0
    args: dict[str, Any] = {}


@dataclass(frozen=True)
class Invocation:
    """One invocation of dbt. Times are UTC.

    Attributes:
        invocation_id: dbt's.
        command: ``build``, ``run``, ``test``, ...
        arguments: of the command, as dbt writes them.
        ended_at: when its results were complete; None while it runs.
    """

    invocation_id: str
    dbt_version: str
    command: str
    started_at: datetime
    ended_at: datetime | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """The id of its own run: dbt's, or one computed from that where it is no UUID."""
        try:
            return str(uuid.UUID(self.invocation_id))
        except ValueError:
            return str(uuid.uuid5(_RUNS, self.invocation_id))

    def run_id_of(self, unique_id: str) -> str:
        """The id of the run of one of its nodes."""
        return str(uuid.uuid5(_RUNS, f"{self.invocation_id}\n{unique_id}"))


def read_invocation(target: Path, results: list[RunResult]) -> Invocation:
    """Read the invocation that wrote run_results.json.

    Args:
        target: the folder of the artifacts.
        results: what the file says of nodes.

    Raises:
        RippleError: there is no such file, it has no id and no time, or it is of a command that
            runs no node.
    """
    path = target / "run_results.json"
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_RunResultsFile)
    except FileNotFoundError:
        raise RippleError(
            "no run_results.json in this folder, so there is no run to send",
            str(target),
            "run `dbt build` first, or send the lineage without runs by --static",
        ) from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RippleError(f"cannot be read ({error})", str(path), "run dbt again") from None
    command = str(file.args.get("which") or "run")
    if command in BUILDS_NOTHING:
        raise RippleError(
            f"is of `dbt {'docs generate' if command == 'generate' else command}`, which runs no node",
            str(path),
            "run `dbt build` (or run, test, seed, snapshot), or send the lineage without runs by"
            " --static",
        )
    metadata = file.metadata
    begun = [moment for result in results if (moment := result.started_at)]
    done = [moment for result in results if (moment := result.completed_at)]
    ended = as_utc(metadata.generated_at) if metadata.generated_at else max(done, default=None)
    if ended is None or not metadata.invocation_id:
        what = "invocation_id" if ended else "generated_at"
        raise RippleError(f"has no {what} in its metadata", str(path), "run dbt again")
    started = (
        as_utc(metadata.invocation_started_at)
        if metadata.invocation_started_at
        else min([ended - timedelta(seconds=file.elapsed_time), *begun])
    )
    return Invocation(
        metadata.invocation_id,
        metadata.dbt_version or "unknown",
        command,
        started,
        ended,
        file.args,
    )


@dataclass(frozen=True)
class Parent:
    """The run that started another one, and the one at the root of both."""

    run_id: str
    job_namespace: str
    job_name: str
    root: Parent | None = None


def parent_in(environment: Mapping[str, str]) -> Parent | None:
    """The run that started this process, as orchestrators pass it on.

    It is in ``OPENLINEAGE_CONTEXT`` (JSON), or in ``OPENLINEAGE_PARENT_ID`` and
    ``OPENLINEAGE_ROOT_PARENT_ID`` (``namespace/job/run id``), which Airflow's
    ``lineage_parent_id`` macro fills.

    Raises:
        RippleError: one of them is there and is not like that.

    Example:
        >>> parent_in({"OPENLINEAGE_PARENT_ID":
        ...     "prod/orders.dbt/0198c3a4-9c6e-7b1c-9b57-3f1ea2a3c001"}).job_name
        'orders.dbt'
    """
    if raw := environment.get("OPENLINEAGE_CONTEXT", "").strip():
        try:
            facet = json.loads(raw)["parent"]
            root = facet.get("root")
            return _parent(facet, _parent(root) if root else None)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RippleError(
                "is not JSON like"
                ' {"parent": {"run": {"runId": ...}, "job": {"namespace": ..., "name": ...}}}',
                "OPENLINEAGE_CONTEXT",
                "set it as the orchestrator gives it, or unset it",
            ) from None
    parents = []
    for name in ("OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID"):
        value = environment.get(name, "").strip()
        # A namespace may have slashes (airflow://production), a run id has none.
        namespace, _, job_and_run = value.rpartition("/")[0].rpartition("/")
        run = value.rpartition("/")[2]
        if value and not (namespace and job_and_run and _is_uuid(run)):
            raise RippleError(
                f"{value!r} is not NAMESPACE/JOB/RUN-ID", name, "set it so, or unset it"
            )
        parents.append(Parent(run, namespace, job_and_run) if value else None)
    parent, root = parents
    return Parent(parent.run_id, parent.job_namespace, parent.job_name, root) if parent else None


def _parent(facet: Mapping[str, Any], root: Parent | None = None) -> Parent:
    run_id = str(uuid.UUID(facet["run"]["runId"]))
    return Parent(run_id, str(facet["job"]["namespace"]), str(facet["job"]["name"]), root)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def job_namespace(given: str | None = None) -> str:
    """The namespace of our jobs: as given, or ``OPENLINEAGE_NAMESPACE``, or ``dbt``."""
    return given or os.environ.get("OPENLINEAGE_NAMESPACE", "").strip() or "dbt"
