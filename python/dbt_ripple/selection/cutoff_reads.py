"""Early cutoff: what the readers of rebuilt relations read of them, and what hooks of a relation change.

And what is asked of a warehouse about two relations, with what its answers mean.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.flow.determinism import changes_only, reads_only
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS

ALL: Final[None] = None
"""Read is every column, and their names and places."""

Columns = frozenset[str] | None
"""Names in lower case, or `ALL`."""

TABLES: Final = frozenset({"table", "view"})

THIS: Final = "ripple_this"
"""Stands for a node's own relation in its hooks."""

_THIS: Final = re.compile(r"\{\{-?\s*this\s*-?\}\}")

KEEPS_ROWS: Final = frozenset({"incremental", "snapshot"})


def kind_of(node: Node) -> str:
    """The materialization of a model; "snapshot" of a snapshot."""
    return node.resource_type if node.resource_type == "snapshot" else node.materialized or "view"


def _is_ephemeral(project: Project, unique_id: str) -> bool:
    node = project.nodes.get(unique_id)
    return node is not None and node.is_ephemeral


class CutoffReads:
    """What models and tests read of relations, and what their hooks change, on both sides.

    Args:
        comparison: of base and head.
        models: those that a selection builds.
        dialect: of both sides.
    """

    def __init__(self, comparison: Comparison, models: Collection[str], dialect: str) -> None:
        self.base, self.head = comparison.base, comparison.head
        self.comparison = comparison
        self.models = models
        self.dialect = dialect
        self._reads: dict[str, dict[str, Columns]] = {}
        self._unknown: dict[str, bool] = {}

    @cached_property
    def analyses(self) -> tuple[Analysis, Analysis]:
        """Of base and of head."""
        return self.comparison.base_analysis, self.comparison.head_analysis

    def above(self, unique_id: str) -> list[str]:
        """The relations that a node of head refers to or names, through ephemeral models."""
        return self._relations(1, unique_id)

    def reads(self, unique_id: str) -> dict[str, Columns]:
        """What a model or test reads of each relation, on either side, through ephemeral models."""
        columns_read = self._reads.get(unique_id)
        if columns_read is not None:
            return columns_read
        read_of: dict[str, set[str]] = {}
        for side in (0, 1):
            ahead, seen = [unique_id], {unique_id}
            while ahead:
                for parent, column in self._edges[side].get(ahead.pop(), ()):
                    if _is_ephemeral((self.base, self.head)[side], parent):
                        if parent not in seen:
                            seen.add(parent)
                            ahead.append(parent)
                        continue
                    columns = read_of.setdefault(parent, set())
                    if column != ROWS:
                        columns.add(column.lower())
        read: dict[str, Columns] = {u: frozenset(columns) for u, columns in read_of.items()}
        node = self.head.nodes[unique_id]
        blind = kind_of(node) in KEEPS_ROWS or not self.is_analysed(unique_id)
        for relation in self.above(unique_id):
            if relation not in read or blind or not self.is_analysed(relation):
                read[relation] = ALL  # it is read otherwise than by name, or in a hidden branch
        self._reads[unique_id] = read
        return read

    @cached_property
    def _edges(self) -> tuple[dict[str, list[tuple[str, str]]], dict[str, list[tuple[str, str]]]]:
        """The relations and columns above each node and test, on base and on head."""
        sides = []
        for project, analysis in zip((self.base, self.head), self.analyses, strict=True):
            wanted = set(self.models)
            wanted |= {u for u, n in project.nodes.items() if n.is_ephemeral}
            edges: dict[str, dict[tuple[str, str], None]] = {}
            into = getattr(analysis.edges, "into", None)
            for edge in into(wanted) if into is not None else analysis.edges:
                edges.setdefault(edge[2], {})[edge[0], edge[1]] = None
            for test, node, column in analysis.test_columns:
                edges.setdefault(test, {})[node, column] = None
            sides.append({child: list(read) for child, read in edges.items()})
        return sides[0], sides[1]

    def is_analysed(self, unique_id: str) -> bool:
        """Whether it is known, of either side, which columns a node has and which it reads."""
        return all(self.status(side, unique_id) in ("analysed", "leaf") for side in (0, 1))

    def status(self, side: int, unique_id: str) -> str:
        """How far a node or test could be analysed; "leaf" of what has no SQL."""
        analysis = self.analyses[side]
        analysed = analysis.nodes.get(unique_id) or analysis.tests.get(unique_id)
        return analysed.status if analysed is not None else "leaf"

    def is_unknown(self, unique_id: str) -> bool:
        """Whether it is not known what a node's SQL reads, or what else is in it.

        Where it cannot be analysed, that is known if all of it is parsed, and of a few kinds. Then it
        counts as reading all of its parents.
        """
        if unique_id not in self._unknown:
            self._unknown[unique_id] = any(self.is_unknown_on(side, unique_id) for side in (0, 1))
        return self._unknown[unique_id]

    def is_unknown_on(self, side: int, unique_id: str) -> bool:
        """The same, of base (0) or of head (1)."""
        status = self.status(side, unique_id)
        if status == "analysed":
            return False
        project = (self.base, self.head)[side]
        node = project.nodes[unique_id]
        is_plain = node.resource_type == "test" or kind_of(node) in TABLES
        if status != "opaque" or not is_plain or node.is_python or not node.compiled_code:
            return True
        above = self.above(unique_id) if side else self.base_parents(unique_id)
        names = [of.relation_name for u in above if (of := project.nodes.get(u)) is not None]
        return not reads_only(node.compiled_code, self.dialect, filter(None, names))

    def own_hooks(self, side: int, unique_id: str) -> list[str] | None:
        """What a node does to its own relation once it is built, of `THIS`; None where it does more.

        That is deletes and updates that only that relation decides on.
        """
        node = (self.base, self.head)[side].nodes[unique_id]
        if node.config.get("sql_header"):
            return None
        hooks = []
        for when, sql in hooks_of(node):
            text = _THIS.sub(THIS, sql)
            if when != "post-hook" or "{" in text or not changes_only(text, self.dialect, THIS):
                return None
            hooks.append(text)
        return hooks

    def base_parents(self, relation: str) -> list[str]:
        """The relations that base's SQL of a model reads, through ephemeral models."""
        return [parent for parent in self._relations(0, relation) if parent != relation]

    def _relations(self, side: int, unique_id: str) -> list[str]:
        project = (self.base, self.head)[side]
        relations: dict[str, None] = {}
        seen: set[str] = set()
        ahead = [unique_id]
        while ahead:
            current = ahead.pop()
            named = (edge[0] for edge in self._edges[side].get(current, ()))
            for parent in dict.fromkeys((*project.parents.get(current, ()), *named)):
                if parent in seen:
                    continue
                seen.add(parent)
                if _is_ephemeral(project, parent):
                    ahead.append(parent)
                else:
                    relations[parent] = None
        return list(relations)

    def base_text(self, relation: str, names: Mapping[str, str]) -> str:
        """Base's SQL of a model over relations in the place of base's, by unique_id."""
        renamed = {}
        for parent in self.base_parents(relation):
            node = self.base.nodes.get(parent)
            if node is None or not node.relation_name:
                continue
            if parent in names:
                renamed[node.relation_name] = names[parent]
            elif node.resource_type == "source" and parent in self.head.nodes:
                # Under another target a source may lie elsewhere: read is what head reads.
                now = self.head.nodes[parent].relation_name
                renamed[node.relation_name] = now or node.relation_name
        return rename(self.base.nodes[relation].compiled_code or "", renamed)


Types = Mapping[str, str]
"""Columns of a relation as its engine describes it, in order: types by name."""


class Question(NamedTuple):
    """Whether a rebuilt relation holds, over some columns, the rows of base's.

    Attributes:
        in_order: and in the same order, as tables of DuckDB keep it.
    """

    relation: str
    columns: Columns
    in_order: bool = False


class Unequal(NamedTuple):
    """Why a relation does not count as equal; ``seen`` where it was compared and is not."""

    reason: str
    seen: bool = True


class Answer(NamedTuple):
    """What the engine says of a rebuilt relation.

    Attributes:
        base: the columns of base's, None where there is none to compare with.
        head: those of the rebuilt one.
        unequal: for each question why it is not equal; None where it is.
    """

    base: Types | None
    head: Types
    unequal: Mapping[Question, Unequal | None]


def unequal_rows(
    base: tuple[Any, ...], head: tuple[Any, ...], *, in_order: bool = False
) -> Unequal | None:
    """What two hashes of `selection.relation_hashes` say, the number of rows first."""
    if base == head:
        return None
    if base[0] != head[0]:
        return Unequal(f"it had {base[0]} rows and has {head[0]}")
    if in_order:
        return Unequal(
            "its rows differ, or come in another order, on which its reader depends", seen=False
        )
    return Unequal("its rows differ")


def equal_columns(base: Types, head: Types, columns: Columns) -> str | None:
    """Why columns differ before any row is looked at: by name, type or place; None where they do not.

    The place counts even for a few columns: `*`, a list of column aliases and a whole row read by
    it, and the relation that a `*` makes hands it on to what reads that by it.
    """
    if columns is ALL:
        if list(base.items()) != list(head.items()):
            return "its columns differ"
        return None
    then, now = (
        {name.lower(): (type_, place) for place, (name, type_) in enumerate(side.items(), 1)}
        for side in (base, head)
    )
    for name in sorted(columns):
        if name not in then or name not in now:
            return f"there is no {name} on {'base' if name not in then else 'head'}"
        (old_type, old_place), (new_type, new_place) = then[name], now[name]
        if old_type != new_type:
            return f"{name} was {old_type} and is {new_type}"
        if old_place != new_place:
            return f"{name} was column {old_place} and is column {new_place}"
    return None
