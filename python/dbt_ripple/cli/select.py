"""`dbt-ripple select`: the tests that a change can break, and the models to build for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.cli.dbt import DbtOptions
from dbt_ripple.cli.options import (
    analysis_options,
    answer,
    artifacts_folder,
    as_document,
    count,
    format_option,
    open_cache,
    project_options,
    warn,
)
from dbt_ripple.cli.shown import code, dbt_word, prose, styled
from dbt_ripple.cli.state import facts_options, open_sides, sides_options, state_folder
from dbt_ripple.errors import RippleError
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.selection import BlockedTest, ProvenTest, Selection
    from dbt_ripple.selection.cutoff import Cutoff


CUTOFF_BASE = click.option(
    "--cutoff-base",
    type=click.Choice(["beside", "state"]),
    help="What --cutoff compares with. beside: base's SQL, built in a schema beside over the same "
    "parents; state: base's relations as they are, if you know that they were built from the same "
    "inputs (a clone).  [default: beside]",
)


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is compared by `--cutoff`, and which tests are in the answer."""
    options = (
        CUTOFF_BASE,
        click.option(
            "--critical",
            metavar="TIER",
            help="Add all tests of affected nodes whose meta.criticality is TIER.",
        ),
        click.option(
            "--select",
            "selected",
            metavar="SPEC",
            multiple=True,
            help="Only what dbt selects by SPEC.",
        ),
        click.option(
            "--exclude",
            "excluded",
            metavar="SPEC",
            multiple=True,
            help="Leave out what dbt selects by SPEC.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    epilog="""\b
Examples:
  dbt-ripple select --state prod-artifacts
  dbt-ripple select --state prod-artifacts --run
  dbt-ripple select --state prod-artifacts --run --cutoff
  dbt-ripple select --base-ref origin/main --format json
  dbt-ripple select --state prod-artifacts --critical tier1 --exclude tag:slow
  dbt build --indirect-selection empty --select $(dbt-ripple select --state prod --output names)
""",
)
@sides_options
@format_option("text", "json", "markdown")
@click.option(
    "--output",
    type=click.Choice(["names", "selector"]),
    help="Print models and tests for `dbt build`. names: one on each line; selector: write a selector "
    "to selectors.yml and print its name.",
)
@click.option(
    "--run", is_flag=True, help="Build the models and run the tests; defer everything else to base."
)
@click.option(
    "--cutoff",
    is_flag=True,
    help="With --run: build level by level, and skip models and tests whose parents come out equal "
    "to base's.",
)
@choice_options
@click.option(
    "--full", is_flag=True, help="Answer with what state:modified+ selects, for comparison."
)
@facts_options
@analysis_options
@project_options
def select(
    state: Path | None,
    base_ref: str | None,
    style: str,
    output: str | None,
    run: bool,
    cutoff: bool,
    cutoff_base: str | None,
    critical: str | None,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    full: bool,
    facts: bool,
    assume_passed: bool,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> int:
    """Print the tests that the change from base to this project can break.

    Base is the project whose artifacts are in --state, or the project at --base-ref.

    The change can break no other test: everything that an unlisted test reads, down to the sources,
    is defined as before. Nodes that cannot be analysed count as changed if anything above them
    changed, and are listed.
    """
    from dbt_ripple.changes import compare
    from dbt_ripple.changes.unchanged import NOTHING_TO_DO, nothing_changed
    from dbt_ripple.selection import select_from, state_modified

    if output and style != "text":
        raise click.UsageError("--output and --format are two ways to print it: give one of them")
    _check_cutoff(cutoff, cutoff_base, run, full, output)
    deciding: Cutoff | None = None
    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with (
        open_cache(cache_dir, no_cache) as cache,
        open_sides(
            *(project_dir, target_path, state, base_ref, options, cache, threads), or_count=not run
        ) as (base, head),
    ):
        only = None
        if selected or excluded:
            before = Path(base.project.target_path)
            only = chosen_by_dbt(project_dir, target_path, before, selected, excluded, options)
        if critical is not None:
            _check_tier(head.project, critical)
        if full:
            selection = state_modified(base.project, head.project, only)
            nothing = "dbt's state:modified+ would run nothing"
        else:
            comparison = compare(
                base.project,
                head.project,
                base_analysis=base.analysis(),
                head_analysis=head.analysis(),
                cache=cache,
            )
            selection = select_from(
                comparison,
                critical=critical,
                only=only,
                facts=facts,
                assume_passed=assume_passed,
                cache=cache,
            )
            nothing = nothing_changed(comparison) or (
                "nothing of what is selected by name changed" if only is not None else NOTHING_TO_DO
            )
            if cutoff:
                from dbt_ripple.cli.run_cutoff import cutoff_of

                deciding = cutoff_of(
                    comparison,
                    selection,
                    critical,
                    as_it_is=cutoff_base == "state",
                    anew=base_ref is not None,
                )
    if deciding is not None:
        from dbt_ripple.cli.run_cutoff import run_cutoff, show_cutoff

        for note in selection.notes:
            warn(note.message)
        folder = artifacts_folder(project_dir, target_path)
        deferred = state_folder(project_dir, state) if state is not None else None
        ran = run_cutoff(deciding, project_dir, folder, options, state=deferred)
        show_cutoff(deciding, head.project, style, nothing)
        return int(ran.failed)
    show(selection, head.project, style, output, nothing)
    if output == "selector":
        from dbt_ripple.cli.selector import NAME, write_selector

        write_selector(selection, head.project, project_dir)
        answer(NAME)
    if not run:
        return 0
    from dbt_ripple.cli.run_selection import run_selection

    folder = artifacts_folder(project_dir, target_path)
    deferred = state_folder(project_dir, state) if state is not None else None
    ran = run_selection(selection, project_dir, folder, options, state=deferred)
    return int(ran.failed)


def _check_cutoff(
    cutoff: bool, cutoff_base: str | None, run: bool, full: bool, output: str | None
) -> None:
    """Refuse options that say nothing together.

    Raises:
        click.UsageError: they do.
    """
    if cutoff_base and not cutoff:
        raise click.UsageError("--cutoff-base says what --cutoff compares with: give that, too")
    if cutoff and not run:
        raise click.UsageError("--cutoff looks at what is built: give --run, too")
    if cutoff and full:
        raise click.UsageError("--cutoff takes from what can differ, which --full does not look at")
    if cutoff and output:
        raise click.UsageError(
            "--output names what to run before it is run; with --cutoff that is known afterwards"
        )


def _check_tier(head: Project, tier: str) -> None:
    """Say it where no node has the tier: a typo would select as if nothing were critical."""
    from dbt_ripple.artifacts import criticality

    known = sorted({t for node in head.nodes.values() if (t := criticality(node)) is not None})
    if tier not in known:
        there = f"; there are {', '.join(known)}" if known else ""
        warn(f"no node of this project has meta.criticality {tier!r}{there}")


def show(
    selection: Selection, head: Project, style: str, output: str | None = None, nothing: str = ""
) -> None:
    """Print a selection on stdout, and what it had to assume on stderr.

    Args:
        selection: what is printed.
        head: has the names.
        style: how.
        output: what is printed instead.
        nothing: what people are told where it is empty.
    """
    for note in selection.notes:
        warn(note.message)
    if output == "selector":
        return
    if output == "names":
        lines = names(selection, head)
    elif style == "json":
        lines = as_document(selection)
    elif is_empty(selection):
        lines = [nothing] if nothing else []
    else:
        lines = list(
            _markdown(selection, head) if style == "markdown" else selection_lines(selection, head)
        )
    if lines:
        answer(lines, fit="wrap" if style == "text" and not output else None)


def chosen_by_dbt(
    project_dir: Path,
    target_path: Path | None,
    state: Path,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    options: DbtOptions,
) -> set[str]:
    """The unique_ids that dbt's own selection grammar selects.

    Raises:
        RippleError: dbt is not installed here, or refuses the selection.
    """
    import json
    import tempfile

    from dbt_ripple.cli.dbt import Dbt

    arguments = list(_LIST)
    for option, specs in (("--select", selected), ("--exclude", excluded)):
        if specs:
            arguments += [option, *(word for spec in specs for word in spec.split())]
    arguments += ["--state", str(state.resolve())]
    # In a folder of its own: `dbt ls` overwrites manifest.json with one that is not compiled.
    with tempfile.TemporaryDirectory() as folder:
        kept = artifacts_folder(project_dir, target_path) / "partial_parse.msgpack"
        if kept.is_file():
            (Path(folder) / kept.name).write_bytes(kept.read_bytes())
        dbt = Dbt(project_dir.resolve(), Path(folder), options, says="none")
        lines = dbt(*arguments).result or []
    if not lines:
        warn(f"dbt itself selects nothing by `{' '.join(arguments[_SPECS:-2])}`")
    try:
        return {json.loads(line)["unique_id"] for line in lines}
    except (ValueError, KeyError, TypeError):
        raise RippleError(
            "dbt lists nodes in a form that is not known", "--select", "upgrade dbt-ripple"
        ) from None


_LIST = ("ls", "--output", "json", "--output-keys", "unique_id")
_SPECS = len(_LIST)


def names(selection: Selection, head: Project) -> list[str]:
    """What is selected, as dbt's ``--select`` takes it: models to build first, tests last.

    A name that dbt would also find elsewhere (it matches folders and other packages, too) is spelled
    out from its package down.
    """
    fqns = [node.fqn for node in head.nodes.values() if node.fqn]
    elsewhere = {part for fqn in fqns for part in fqn[:-1]}
    often = Counter(fqn[-1] for fqn in fqns)
    found = []
    tests = [test.unique_id for test in selection.tests]
    for unique_id in (*selection.models, *selection.unit_tests, *tests):
        node = head.nodes[unique_id]
        name = node.display_name
        unclear = name in elsewhere or node.name in elsewhere or dbt_word(name) != name
        if node.fqn and (unclear or often[node.fqn[-1]] > 1):
            found.append(".".join(map(dbt_word, node.fqn)))
        else:
            found.append(dbt_word(name))
    return found


# --- how it is printed -----------------------------------------------------------------------------


def headline(selection: Selection) -> str:
    """One line: how many tests, against what dbt would run."""
    counts = selection.counts
    said = f", {counts.proven_tests:,} proven" if counts.proven_tests else ""
    if counts.blocked_tests:
        said += f", {counts.blocked_tests:,} blocked by what cannot be built"
    return (
        f"{counts.impacted_tests:,} of {count(counts.all_tests, 'test')}{said}; dbt's "
        f"state:modified+ would run {counts.state_modified_tests:,}"
    )


def is_empty(selection: Selection) -> bool:
    """Whether there is nothing to say: base and head are equal."""
    found = (selection.tests, selection.proven, selection.blocked, selection.models)
    return not any((*found, selection.broken, selection.exposures, selection.unit_tests)) and (
        selection.counts.state_modified_tests == 0
    )


def _sections(selection: Selection, head: Project) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What follows the tests: a title, and names with what is said of each."""

    def name(unique_id: str) -> str:
        node = head.nodes.get(unique_id)
        return node.spoken_name if node else unique_id

    blocked: dict[str, list[BlockedTest]] = {}
    for test in selection.blocked:
        blocked.setdefault(test.blocked_by, []).append(test)
    yield "cannot compile", [(name(b.unique_id), b.reason.message) for b in selection.broken]
    yield (
        "cannot be built",
        [
            (name(u), f"{_cause(tests[0])}; {count(len(tests), 'test')} blocked")
            for u, tests in blocked.items()
        ],
    )
    yield "proven", [(name(test.unique_id), _ground(test, name)) for test in selection.proven]
    yield "not proven", _not_proven(selection)
    yield "to build", [(name(u), "") for u in selection.models]
    yield "unit tests", [(name(u), "") for u in selection.unit_tests]
    yield "exposures", [(name(u), "") for u in selection.exposures]
    yield "not analysed", [(name(o.unique_id), o.reason.message) for o in selection.opaque]


def _cause(test: BlockedTest) -> str:
    """Why the relation above a blocked test cannot be built."""
    because = test.reason.arguments["because"]
    return because.message if isinstance(because, Reason) else ""


def _not_proven(selection: Selection) -> list[tuple[str, str]]:
    """What is missing to prove the selected tests, and of how many; a note says it where of all."""
    missing = (test.not_proven for test in selection.tests if test.not_proven)
    reasons = Counter(m.message for m in missing if m.code is not Code.NO_RESULTS)
    return [(count(number, "test"), reason) for reason, number in reasons.most_common()]


def _ground(test: ProvenTest, name: Callable[[str], str]) -> str:
    """What a proven test rests on, short: `explain` gives the whole argument."""
    if not test.facts:
        said = test.reason.message
        return said if len(said) <= _SHORT else "by how its rows are made (`explain`)"
    shown = ", ".join(name(fact) for fact in test.facts[:_FACTS])
    more = len(test.facts) - _FACTS
    return f"rests on {shown}" + (f" and {more:,} more" if more > 0 else "")


_SHORT = 120
_FACTS = 2


def selection_lines(selection: Selection, head: Project) -> Iterator[str]:
    """A selection as text."""
    yield headline(selection)
    width = min(60, max((len(test.name) for test in selection.tests), default=0))
    for test in selection.tests:
        yield f"  {test.name:<{width}}  {styled(test.reason.message, dim=True)}"
    for title, items in _sections(selection, head):
        if not items:
            continue
        if any(said for _, said in items):
            yield f"{title}:"
            for item, said in items[:_SHOWN]:
                yield f"  {item}: {said}"
            if len(items) > _SHOWN:
                yield f"  and {len(items) - _SHOWN:,} more (--format json has them all)"
        else:
            yield f"{title}: {', '.join(item for item, _ in items)}"


_SHOWN = 10


def _markdown(selection: Selection, head: Project) -> Iterator[str]:
    yield f"**{headline(selection)}**"
    if selection.tests:
        yield ""
        yield "| test | reason |"
        yield "| --- | --- |"
        for test in selection.tests:
            yield f"| {code(test.name)} | {prose(test.reason.message)} |"
    for title, items in _sections(selection, head):
        if items:
            yield ""
            yield f"{title.capitalize()}:"
            yield ""
            for item, said in items:
                yield f"- {code(item)}" + (f": {prose(said)}" if said else "")
