"""Projects of any size that were never a dbt project: what a page has to draw of thousands of models."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from dbt_ripple.changes.diff import ColumnDiff, NodeDiff
from dbt_ripple.graph.traversal import EdgeKind
from dbt_ripple.pages.explorer_compare import Compared, NodeState
from dbt_ripple.pages.health import Health, Slos
from dbt_ripple.pages.project_document import (
    DescribedColumn,
    DescribedNode,
    DescribedTest,
    Link,
    ProjectDocument,
)

COLUMNS = 15
WORDS = "order customer payment amount total country region status created updated channel".split()
KINDS = (
    (EdgeKind("DIRECT", "IDENTITY", False),),
    (EdgeKind("DIRECT", "TRANSFORMATION", False), EdgeKind("INDIRECT", "CONDITIONAL", False)),
)
FILTER = (EdgeKind("INDIRECT", "FILTER", False),)


LAYERS = ("staging", "intermediate", "marts")
LONG = "monthly_recurring_revenue_by_customer_segment"
"""Names of real projects are as long as that; every seventh model and column has it."""


def large(number: int) -> ProjectDocument:
    """A project of so many models, in layers: each reads one to four of the nearest before it."""
    rng = random.Random(7)
    ids = [f"model.p.model_{i:05}" for i in range(number)]
    parents: list[list[int]] = [
        sorted({rng.randrange(max(0, i - 400), i) for _ in range(rng.randint(1, 4))}) if i else []
        for i in range(number)
    ]
    children: list[list[int]] = [[] for _ in range(number)]
    for child, of in enumerate(parents):
        for parent in of:
            children[parent].append(child)
    names = [[f"{rng.choice(WORDS)}_{rng.choice(WORDS)}_{k}" for k in range(COLUMNS)] for _ in ids]
    links = []
    for child, of in enumerate(parents):
        for parent in of:
            links.append(Link(ids[parent], "*rows*", ids[child], "*rows*", FILTER))
        for k in range(COLUMNS if of else 0):
            parent = of[k % len(of)]
            kinds = KINDS[k % 2]
            links.append(Link(ids[parent], names[parent][k], ids[child], names[child][k], kinds))
    health = Health(
        **dict.fromkeys(Health.__struct_fields__[:-1], 0),  # type: ignore[arg-type]
        slos=Slos(),
    )
    described = {
        unique_id: node(unique_id, i, parents[i], children[i], ids, names[i])
        for i, unique_id in enumerate(ids)
    }
    return ProjectDocument(
        name="large",
        adapter_type="spark",
        dbt_version="1.11.0",
        ripple_version="0",
        generated_at=datetime(2026, 1, 1, tzinfo=UTC),
        has_catalog=True,
        nodes=described,
        tests={f"test.p.t{i}": a_test(i) for i in range(number)},
        links=tuple(links),
        health=health,
        domains={},
        notes=(),
    )


def node(
    unique_id: str,
    i: int,
    parents: list[int],
    children: list[int],
    ids: list[str],
    names: list[str],
) -> DescribedNode:
    absent = dict.fromkeys(DescribedNode.__struct_fields__)
    columns = tuple(
        DescribedColumn(
            name=name,
            type="string",
            description=f"The {name.replace('_', ' ')} of it.",
            expression=f"COALESCE(o.{name}, '{i % 97}')" if k % 2 else None,
            pii=None,
            is_followed=True,
            tests=(),
            blast_radius=k,
        )
        for k, name in enumerate(names)
    )
    name = unique_id.rpartition(".")[2]
    layer = LAYERS[min(3 * i // len(ids), 2)]
    said = {
        "unique_id": unique_id,
        "name": f"{name}_{LONG}" if i % 7 == 3 else name,
        "path": f"models/{layer}/team_{i % 23}/{name}.sql",
        "resource_type": "model",
        "asset_type": "DBT_MODEL",
        "relation": f"lake.marts.{unique_id}",
        "layer": layer,
        "tags": (f"tag_{i % 40}",),
        "owner": f"team_{i % 60}@x.example" if i % 5 else None,
        "status": "analysed",
        "columns": columns,
        "parents": tuple(ids[p] for p in parents),
        "children": tuple(ids[c] for c in children),
        "tests": (f"test.p.t{i}",),
        "contract_versions": (),
        "path_is_complete": True,
        "blast_radius": len(children),
        "slos": Slos(),
    }
    return DescribedNode(**{**absent, **said})  # type: ignore[arg-type]


def a_test(i: int) -> DescribedTest:
    absent = dict.fromkeys(DescribedTest.__struct_fields__)
    said = {"unique_id": f"test.p.t{i}", "name": f"not_null_{i}", "kind": "not_null", "reads": ()}
    return DescribedTest(**{**absent, **said})  # type: ignore[arg-type]


def changed(document: ProjectDocument, number: int) -> Compared:
    """A change of so many of its models, spread over it, and all that reads them directly."""
    ids = list(document.nodes)
    states = {}
    for unique_id in ids[:: max(1, len(ids) // number)][:number]:
        names = [column.name for column in document.nodes[unique_id].columns]
        columns = [ColumnDiff(name=name, change="redefined") for name in names[::2]]
        difference = NodeDiff(unique_id=unique_id, change="changed", columns=columns)
        why = "Its own definition differs."
        states[unique_id] = NodeState(
            unique_id=unique_id, state="changed", why=why, difference=difference
        )
    for unique_id in list(states):
        for child in document.nodes[unique_id].children:
            why = "It reads something that differs."
            states.setdefault(child, NodeState(unique_id=child, state="impacted", why=why))
    counts = {
        **{of: sum(s.state == of for s in states.values()) for of in ("changed", "impacted")},
        "tests_to_run": 7,
        "unit_tests_to_run": 1,
        "tests_proven": 0,
        "tests_blocked": 0,
        "tests": len(document.tests),
    }
    return Compared("main", states, counts, [])
