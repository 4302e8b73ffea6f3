"""`--run`: dbt builds what a selection needs and runs its tests, in this process.

Everything that is not built is deferred to the state, with ``--favor-state``, because relations in
the target's schema may be older than what the selection compared with. Without a state
(``--base-ref`` alone) there is nothing to defer to, so everything that is read is built, too.

A proven test (rule 16) rests on other tests. If one of those does not pass, the proven test runs
afterwards. So does a blocked test if the relation that blocks it was built after all. So CI is
never green where running everything would have made it red.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dbt_ripple.artifacts import Project
from dbt_ripple.changes.compile_inputs import asking_the_warehouse, rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.dbt_runner.compile_nodes import CHOSEN, Unanswered, choose, compile_nodes
from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions, temporary_folder, why
from dbt_ripple.dbt_runner.kept_artifacts import ParsedBefore
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import count, warn
from dbt_ripple.selection.result import PASSED, Selection, SelectionRun


def compile_against(
    base: Project,
    head: Project,
    unique_ids: Collection[str],
    dbt: Dbt,
    state: Path,
    parsed: ParsedBefore,
    unanswered: Unanswered,
) -> Project:
    """Compile nodes of head while base's relations stand in for what head has not built.

    So what introspects (rule 11) finds something to query; where nothing does, nothing stands in. In
    the compiled SQL base's names of relations become head's.

    Args:
        base: what ``state`` holds.
        head: what is compiled.
        unique_ids: of the nodes.
        dbt: on head.
        state: the folder with base's manifest.
        parsed: what dbt parsed head into before.
        unanswered: is told what is left uncompiled, because dbt cannot connect.

    Raises:
        RippleError: dbt could not parse or compile them.
    """
    if not unique_ids:
        return head
    manifest = parsed.parse(dbt)
    asks = bool(asking_the_warehouse(head, unique_ids))
    deferred = deferred_to(state if asks else None)
    compiled = compile_nodes(dbt, manifest, head, unique_ids, *deferred, unanswered=unanswered)
    if not asks or unanswered.why:  # then nothing is deferred to base
        return compiled
    renamed = other_names(base, head)
    return compiled.with_compiled(
        {
            u: rename(text, renamed)
            for u in unique_ids
            if (text := compiled.nodes[u].compiled_code) is not None
        }
    )


def run_selection(
    selection: Selection,
    project_dir: Path,
    target_path: Path,
    options: DbtOptions,
    *,
    state: Path | None = None,
) -> SelectionRun:
    """Build and test a selection, then the left-out tests that have to run after all.

    Args:
        selection: what to build and run.
        project_dir: head.
        target_path: where dbt's artifacts go, as after any ``dbt build``; those of tests that run
            after all go to a folder ``left_out`` in it.
        options: how dbt is called.
        state: the folder with base's manifest, which everything else is deferred to; None builds
            all that is read, up to the sources.

    Raises:
        RippleError: dbt could not run at all.
    """
    ran = SelectionRun()
    chosen = {
        *selection.models,
        *selection.unit_tests,
        *(test.unique_id for test in selection.tests),
    }
    if not chosen:
        return ran
    project_dir, target_path = project_dir.resolve(), target_path.resolve()
    dbt = Dbt(project_dir, target_path, options)
    manifest = dbt("parse").result
    if state is None and (more := read_by(manifest, chosen) - chosen):
        warn(
            f"nothing to defer to: {count(len(more), 'node')} that these read are built, too "
            "(with --state, base's would be read)"
        )
        chosen |= more
    with temporary_folder() as folder:
        functions = functions_of(selection.models)
        if state and functions:
            write_state(state, target_path, functions, folder)
        deferred = deferred_to(folder if state and functions else state)
        run_nodes(ran, dbt, manifest, chosen, deferred)
    run_left_out(
        ran=ran,
        selection=selection,
        dbt=dbt,
        manifest=manifest,
        built=selection.models,
        target_path=target_path,
        state=state,
    )
    return ran


def run_left_out(
    ran: SelectionRun,
    selection: Selection,
    dbt: Dbt,
    manifest: Any,
    built: Collection[str],
    target_path: Path,
    state: Path | None,
) -> None:
    """Run the proven and blocked tests that have to run after all (see `to_run`).

    Args:
        ran: what has been run; it is told what is run here.
        selection: has the proven and the blocked tests.
        dbt: on head.
        manifest: dbt's own, as it parsed head.
        built: unique_ids of what was built.
        target_path: where the artifacts of what was run before are.
        state: as in `run_selection`.
    """
    while late := to_run(selection, ran.statuses):
        if not ran.left_out:
            warn(
                "a test that proven tests rest on did not pass, or a model that blocked tests was "
                "built: these tests are run, too"
            )
        ran.left_out += late
        warn(f"running {count(len(late), 'test')} that had been left out")
        with temporary_folder() as folder:
            if state:
                write_state(state, target_path, built, folder)
            deferred = deferred_to(folder if state else None)
            if state is None:
                late += sorted(read_by(manifest, late) - ran.statuses.keys())
            run_nodes(ran, dbt, manifest, late, deferred, target_path / "left_out")


def read_by(manifest: Any, unique_ids: Collection[str]) -> set[str]:
    """All that nodes read, directly or not, and that dbt can build.

    Args:
        manifest: dbt's own.
        unique_ids: of the nodes.
    """
    # dbt before 1.11 has no functions.
    buildable = {**manifest.nodes, **getattr(manifest, "functions", {})}
    parents: set[str] = set()
    ahead = list(unique_ids)
    while ahead:
        unique_id = ahead.pop()
        node = buildable.get(unique_id) or manifest.unit_tests.get(unique_id)
        for parent in node.depends_on_nodes if node is not None else ():
            if parent in buildable and parent not in parents:
                parents.add(parent)
                ahead.append(parent)
    return parents


def functions_of(unique_ids: Iterable[str]) -> list[str]:
    """The user-defined functions among what is built.

    dbt calls those of ``--state`` where its adapter does not list a function as a relation (none
    does on DuckDB), also where it has just built another. So they go into what it defers to.
    """
    return [unique_id for unique_id in unique_ids if unique_id.startswith("function.")]


def deferred_to(state: Path | None) -> list[str]:
    """How dbt is told what to read in the place of what it does not build."""
    if state is None:
        return ["--no-defer"]
    return ["--defer", "--favor-state", "--state", str(state.resolve())]


def to_run(selection: Selection, statuses: Mapping[str, str]) -> list[str]:
    """The left-out tests that have not run yet and have to.

    A proven test has to run where a test it rests on did not pass, a blocked one where the relation
    that blocks it was built.
    """
    unique_ids = [
        test.unique_id
        for test in selection.proven
        if any(statuses.get(fact, "pass") not in PASSED for fact in test.facts)
    ]
    unique_ids += [
        test.unique_id for test in selection.blocked if statuses.get(test.blocked_by) in PASSED
    ]
    return [unique_id for unique_id in unique_ids if unique_id not in statuses]


def write_state(state: Path, built: Path, models: Collection[str], to: Path) -> None:
    """Write a manifest to defer to: base's, with the nodes that were built as head has them.

    Args:
        state: the folder with base's manifest.
        built: the folder with head's.
        models: unique_ids of what was built.
        to: the folder to write manifest.json to.
    """
    base: dict[str, msgspec.Raw]
    base, head = (
        msgspec.json.decode((folder / "manifest.json").read_bytes(), type=dict[str, msgspec.Raw])
        for folder in (state, built)
    )
    state_of = dict(base)
    for kind in ("nodes", "functions"):  # dbt before 1.11 writes no functions
        if kind in head:
            nodes, own = (
                msgspec.json.decode(side.get(kind, b"{}"), type=dict[str, msgspec.Raw])
                for side in (base, head)
            )
            nodes.update({unique_id: own[unique_id] for unique_id in models if unique_id in own})
            state_of[kind] = msgspec.Raw(msgspec.json.encode(nodes))
    (to / "manifest.json").write_bytes(msgspec.json.encode(state_of))


def run_nodes(
    ran: SelectionRun,
    dbt: Dbt,
    manifest: Any,
    unique_ids: Collection[str],
    deferred: list[str],
    target_path: Path | None = None,
) -> None:
    """Let dbt build some nodes, and note the result of each."""
    result = dbt.on(choose(manifest, unique_ids)).attempt(
        *("build", "--select", f"tag:{CHOSEN}", "--indirect-selection", "empty", *deferred),
        target_path=target_path,
        loud=True,
    )
    if result.exception is not None:
        raise RippleError(
            f"dbt could not run the selection ({why(result)})",
            str(dbt.project_dir),
            f"dbt's log has more: {dbt.log_file}",
        ) from result.exception
    choose(manifest, ())
    # dbt has written the tags with the rest.
    manifest.write(str((target_path or dbt.target_path) / "manifest.json"))
    statuses = {
        node_result.node.unique_id: str(node_result.status) for node_result in result.result.results
    }
    # What dbt did not come to has not passed.
    ran.statuses |= dict.fromkeys(unique_ids, "skipped") | statuses
    ran.messages |= {
        node_result.node.unique_id: str(node_result.message)
        for node_result in result.result.results
        if node_result.message and statuses[node_result.node.unique_id] not in PASSED
    }
    ran.failed |= not result.success
