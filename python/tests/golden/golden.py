"""What may not change by a refactoring: digests of all fingerprints and edges, and of answers.

    python golden.py check [PART]     what differs from the record; exits with 1 where something does
    python golden.py record           write the record anew (`make golden`)
    python golden.py show KEY         all that the digests of an item stand for, as JSON

A refactoring leaves the record as it is. Who changes an answer on purpose records anew, and the diff
of `golden.txt` says which nodes and which edits that reached. To see how an item differs, ``show`` it
on both commits and compare. The record depends on the version of sqlglot (which parses every query and
writes the edited ones), of dbt (which compiles the shop) and of DuckDB (which says what the labs'
generator keeps); on no path, cache, hash seed or order of a dictionary.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

_TESTS: Final = Path(__file__).parents[1]
for _folder in (_TESTS, Path(__file__).parent):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))

import worlds_on_paper as paper  # noqa: E402
from flow.lineage_fixtures import read_fixtures  # noqa: E402
from flow.test_fixtures import table  # noqa: E402

from dbt_ripple.artifacts import Project, read_project  # noqa: E402
from dbt_ripple.changes import compare  # noqa: E402
from dbt_ripple.changes.diff import Diff, diff  # noqa: E402
from dbt_ripple.errors import RippleError  # noqa: E402
from dbt_ripple.flow.identifiers import dialect_of  # noqa: E402
from dbt_ripple.flow.link import link  # noqa: E402
from dbt_ripple.flow.lower import lower  # noqa: E402
from dbt_ripple.governance.gate import GateReport, gate_from  # noqa: E402
from dbt_ripple.governance.impact import ImpactReport, impact  # noqa: E402
from dbt_ripple.governance.ripple_yml import Config  # noqa: E402
from dbt_ripple.graph.analyse_project import analyse  # noqa: E402
from dbt_ripple.graph.cache import Cache  # noqa: E402
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis  # noqa: E402
from dbt_ripple.graph.lineage_tables import ROWS  # noqa: E402
from dbt_ripple.selection.result import Selection  # noqa: E402
from dbt_ripple.selection.select import select_from  # noqa: E402

RECORD: Final = Path(__file__).with_name("golden.txt")
SEED: Final = 15
VERSIONS: Final = ("sqlglot", "dbt-core", "duckdb")
"""What the record depends on besides this repository."""

MODELS: Final = 1000
"""Models of the generated project whose fingerprints are recorded."""


@dataclass
class Item:
    """One line of the record.

    Attributes:
        key: what it is about.
        parts: what its digests stand for, by name, in order.
        note: what a reader of the record wants to see of it; it is no part of what is compared.
    """

    key: str
    parts: dict[str, Any]
    note: str = ""

    def line(self) -> str:
        """As the record has it: the key, a digest of all, two letters of each part's, the note."""
        digests = [digest(part) for part in self.parts.values()]
        return "\t".join((self.key, digest(digests), "".join(d[:2] for d in digests), self.note))


def digest(value: Any) -> str:
    """A short digest of what JSON can hold."""
    text = json.dumps(value, sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return sorted(value) if isinstance(value, (set, frozenset)) else msgspec.to_builtins(value)


# -- fingerprints and edges -------------------------------------------------------------------------


def fixtures() -> Iterator[Item]:
    """Every query of the lineage fixtures, lowered and linked."""
    for fixture in read_fixtures():
        dialect = dialect_of(fixture.dialect)
        lowered = lower(fixture.sql, dialect)
        if lowered.rel is None:
            yield Item(f"fixture {fixture.id}", {"status": "opaque"}, "opaque")
            continue
        linked = link(lowered, table, dialect)
        made = linked.relation
        parts: dict[str, Any] = {
            "missing names": linked.missing,
            "rows": (made.rows.fp, _sorted(made.rows.deps), made.rows.order),
        }
        for number, column in enumerate(made.columns, 1):
            parts[f"column {number}, {column.name}"] = (
                column.name,
                column.fp,
                _sorted(column.deps),
            )
        yield Item(f"fixture {fixture.id}", parts)


def _sorted(deps: Any) -> list[Any]:
    return sorted([*key, mask] for key, mask in deps.items())


def project_items(name: str, project: Project, analysis: Analysis) -> Iterator[Item]:
    """Every node of an analysed project with its edges, and the tests of each."""
    edges: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    children: dict[str, None] = {}
    for edge in analysis.edges:
        edges[edge.child_id, edge.child_column].append(
            [*edge[:2], edge.type, edge.subtype, edge.masking]
        )
        children[edge.child_id] = None
    for parents_of in edges.values():
        parents_of.sort()
    for unique_id in sorted({*analysis.nodes, *children}):
        node = analysis.nodes.get(unique_id)
        parts = _node(node) if node is not None else {}
        columns = {} if node is None else dict(zip(node.columns, node.fingerprints, strict=True))
        for column, fingerprint in columns.items():
            parts[f"column {column}"] = (fingerprint, edges.pop((unique_id, column), []))
        parts["edges of its rows"] = edges.pop((unique_id, ROWS), [])
        yield Item(f"{name} {unique_id}", parts, node.status if node else "")
    others: defaultdict[str, list[Any]] = defaultdict(list)
    for (child, column), parents_of in sorted(edges.items()):
        others[child].append([column, parents_of])
    yield Item(f"{name} edges of columns that are not known", dict(others))
    tests: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    read: defaultdict[str, list[Any]] = defaultdict(list)
    for test, unique_id, column in analysis.test_columns:
        read[test].append([unique_id, column])
    for unique_id, seen in sorted(analysis.tests.items()):
        parents = project.parents.get(unique_id) or ["nothing"]
        tests[min(parents)][unique_id] = [
            _node(seen),
            list(zip(seen.columns, seen.fingerprints, strict=True)),
            sorted(read[unique_id]),
        ]
    for unique_id, unit in sorted(analysis.unit_tests.items()):
        tests[unit.model][unique_id] = [unit.fingerprint, sorted(unit.types.items())]
    for parent, parts in sorted(tests.items()):
        yield Item(f"{name} tests of {parent}", parts)


def _node(node: NodeAnalysis) -> dict[str, Any]:
    return {
        "status": node.status,
        "names of its columns": node.columns,
        "rows": node.rows_fingerprint,
        "order": (node.order, node.incidental),
        "what it reads besides its query": (
            sorted(node.introspects),
            node.introspection_fingerprint,
        ),
        "names that are not there": sorted(node.unresolved_names),
    }


# -- answers ------------------------------------------------------------------------------------------


def answers(world: paper.PaperWorld, edits: int) -> Iterator[Item]:
    """What `select`, `diff` and `gate` say of so many edits of a world, and `impact` of a fourth."""
    world.scratch.mkdir(parents=True, exist_ok=True)
    cache = Cache(world.scratch / "cache")
    base = world.project
    for key, unique_id, edit in world.edits(SEED, edits):
        made = {k: v for k, v in asdict(edit).items() if v}
        head = world.head(edit)
        comparison = compare(
            base,
            head,
            base_analysis=world.analysis,
            head_analysis=analyse(head, cache=cache),
            cache=cache,
        )
        proven = select_from(comparison, facts=True)
        without = select_from(comparison, facts=False)
        judged = gate_from(comparison, Config())
        differs = diff(comparison)
        yield Item(
            f"edit {key} of {unique_id}",
            {
                "the edit itself": [unique_id, made],
                "select": selected(proven, head),
                "select --no-facts": selected(without, head),
                "diff": differences(differs),
                "gate": gated(judged),
            },
            f"{len(proven.tests)} tests ({len(without.tests)} without facts), "
            f"{len(proven.models)} models, {len(differs.nodes)} differ, {judged.decision}",
        )
    for key, node, change in world.thoughts(SEED, edits // 4):
        asked = [node.unique_id, *change]
        try:
            report = impact(base, node, [change], analysis=world.analysis, cache=cache)
        except RippleError:
            yield Item(f"impact {key} of {node.unique_id}", {"asked": asked}, "refused")
            continue
        yield Item(
            f"impact {key} of {node.unique_id}",
            {"asked": asked, "impact": foreseen(report)},
            f"{len(report.affected_assets)} affected, {report.decision}",
        )


def selected(selection: Selection, head: Project) -> Any:
    """What a selection is, without its sentences."""
    need_not = {t.unique_id: t.facts for t in selection.proven}
    need_not |= {t.unique_id: [t.blocked_by] for t in selection.blocked}
    return {
        "run": [[t.unique_id, t.path] for t in selection.tests],
        "need not run": [[u, need_not[u]] for u in head.nodes if u in need_not],
        "build": selection.models,
        "do not compile": [b.unique_id for b in selection.broken],
        "exposures": selection.exposures,
        "unit tests": selection.unit_tests,
        "opaque": [o.unique_id for o in selection.opaque],
        "dbt would run": selection.counts.state_modified_tests,
    }


def differences(diff: Diff) -> Any:
    """What differs, without the texts."""
    return {
        "nodes": [
            [
                n.unique_id,
                n.change,
                n.rows.change if n.rows else None,
                [[c.name, c.change] for c in n.columns],
                n.reordered,
            ]
            for n in diff.nodes
        ],
        "do not compile": [b.unique_id for b in diff.broken],
    }


def gated(report: GateReport) -> Any:
    """What the gate decides and by what, without its sentences."""
    return {
        "decision": report.decision,
        "risk": report.risk_level,
        "findings": [[f.rule, f.level, f.unique_id, f.column] for f in report.findings],
        "affected": _affected(report.affected),
        "opaque": list(report.opaque),
        "removed": report.removed,
    }


def foreseen(report: ImpactReport) -> Any:
    """What a change would reach, without the sentences."""
    return {
        "decision": report.decision,
        "risk": report.risk_level,
        "affected": _affected(report.affected_assets),
        "opaque": list(report.opaque),
        "do not compile": report.broken_tests,
        "tests": report.tests,
        "promises": len(report.promises),
    }


def _affected(assets: Sequence[Any]) -> Any:
    return [
        [a.unique_id, a.asset_type, a.affected_references, a.severity, a.owner, a.path, a.may_read]
        for a in assets
    ]


# -- the record -----------------------------------------------------------------------------------------


ARTIFACTS: Final = _TESTS / "artifacts" / "fixtures"
EDITS: Final = {"shop": 120, "lab 7000": 80, "lab 7001": 80, "generated 40": 40}
"""How many edits are made in each world."""
SECTIONS: Final = (
    "fixture",
    *sorted(f.name for f in ARTIFACTS.iterdir()),
    "generated 1000",
    *EDITS,
)
"""The parts of the record; a line begins with its part's name, behind ``edit`` or ``impact`` where it is an answer."""


def section_of(key: str) -> str:
    """The part of the record that a line stands in."""
    about = key.removeprefix("edit ").removeprefix("impact ")
    return next(s for s in SECTIONS if about.startswith((f"{s} ", f"{s}:")))


def items(work: Path, section: str) -> Iterator[Item]:
    """What a part of the record has, made anew in a folder."""
    if section == "fixture":
        yield from fixtures()
    elif section in EDITS:
        name, _, number = section.partition(" ")
        make = {"lab": paper.lab, "generated": paper.generated}
        world = make[name](work, int(number)) if number else paper.shop(work)
        yield from project_items(world.name, world.project, world.analysis)
        yield from answers(world, EDITS[section])
    elif section.startswith("generated"):
        world = paper.generated(work, int(section.split()[1]))
        yield from project_items(world.name, world.project, world.analysis)
    else:
        project = read_project(ARTIFACTS / section)
        yield from project_items(section, project, analyse(project))


def record(work: Path) -> list[str]:
    """The lines of the record as it is now."""
    made = [f"# {name} {version(name)}" for name in VERSIONS]
    for section in SECTIONS:
        # Labs of two sections write to one folder otherwise.
        made += [item.line() for item in items(work / section, section)]
    return made


def recorded(section: str, lines: Sequence[str]) -> list[str]:
    """The lines of a part of the record."""
    return [x for x in lines if x[:1] != "#" and section_of(x.split("\t")[0]) == section]


def report(before: Sequence[str], now: Sequence[Item]) -> list[str]:
    """What differs from lines of the record, a line each; empty where nothing does."""
    recorded = {line.split("\t")[0]: line.split("\t") for line in before}
    told = []
    for item in now:
        was = recorded.pop(item.key, None)
        line = item.line().split("\t")
        if was is None:
            told.append(f"{item.key}: is not in the record")
        elif was[1] != line[1]:
            old, new = was[2], line[2]
            which = [
                n for i, n in enumerate(item.parts) if old[2 * i : 2 * i + 2] != new[2 * i :][:2]
            ]
            if len(old) != len(new):
                which = [f"{len(old) // 2} parts before, {len(new) // 2} now"]
            noted = f" ({was[3]} before; {line[3]} now)" if was[3] != line[3] else ""
            told.append(f"{item.key}: {', '.join(which) or 'something'}{noted}")
    told += [f"{key}: is in the record, and not there any more" for key in recorded]
    return told


def complaint(told: Sequence[str], lines: Sequence[str]) -> str:
    """That so much differs from the record, and with which other versions that was made."""
    said = [f"{len(told)} items differ from the record:", *told[:60]]
    made_with = dict(line[2:].split() for line in lines if line[:1] == "#")
    said += [
        f"{name} {version(name)} here, and the record was made with {name} {then}:"
        " install what python/constraints.txt says before you look further"
        for name, then in made_with.items()
        if then != version(name)
    ]
    return "\n".join(said) + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("check", "record", "show"))
    parser.add_argument("key", nargs="?", help="of check: a part; of show: how a line begins")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="golden") as folder:
        work = Path(folder)
        if given.what == "show":
            for item in items(work, section_of(given.key)):
                if item.key.startswith(given.key):
                    print(item.key, json.dumps(item.parts, indent=1, default=_plain))
            return 0
        if given.what == "record":
            RECORD.write_text("\n".join(record(work)) + "\n", encoding="utf-8")
            return 0
        lines = RECORD.read_text(encoding="utf-8").splitlines()
        told = []
        for section in [given.key] if given.key else SECTIONS:
            told += report(recorded(section, lines), list(items(work, section)))
        print(complaint(told, lines) if told else "all is as recorded")
        return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
