"""What changed between base and head, column by column, with the SQL before and after."""

from __future__ import annotations

import msgspec

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.causes import Cause, causes_of
from dbt_ripple.changes.column_types import retyped
from dbt_ripple.changes.comparison import Comparison, NodeChange, made_once
from dbt_ripple.changes.verdict import Broken, verdict_of
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.query_text import QueryText, text_of_query
from dbt_ripple.graph.config_fingerprints import OF_COLUMNS, hooks_of
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.node_properties import counted
from dbt_ripple.graph.semantic_references import SEMANTIC, defined
from dbt_ripple.jinja.text import branches
from dbt_ripple.reasons import Reason


class ColumnDiff(msgspec.Struct, kw_only=True):
    """One column that differs.

    Attributes:
        change: added, removed, renamed (the same definition under another name), redefined,
            retyped, or upstream (it reads something that changed).
        before: the SQL of base over the relations that its query reads, the former name or the
            former type; None where there is none.
        after: likewise, of head.
    """

    name: str
    change: str
    before: str | None = None
    after: str | None = None


class RowsDiff(msgspec.Struct, kw_only=True):
    """That a row set differs.

    Attributes:
        change: redefined or upstream.
        before: clauses and settings only base has.
        after: clauses and settings only head has.
    """

    change: str
    before: list[str] = []
    after: list[str] = []


class NodeDiff(msgspec.Struct, kw_only=True):
    """One relation that differs.

    Attributes:
        change: added, removed, changed (by itself), or downstream (only by what it reads).
        reordered: whether columns of both sides stand in another order.
    """

    unique_id: str
    change: str
    rows: RowsDiff | None = None
    columns: list[ColumnDiff] = []
    reordered: bool = False


class Diff(msgspec.Struct, kw_only=True):
    """All that differs, in the order of head's lineage; what only base has comes last.

    Attributes:
        broken: what cannot compile on head and could on base, tests among it.
        causes: what was edited (see `changes.causes`).
        notes: what the answer had to assume.
    """

    nodes: list[NodeDiff] = []
    broken: list[Broken] = []
    causes: list[Cause] = []
    notes: list[Reason] = []


@made_once
def diff(comparison: Comparison) -> Diff:
    """Say what differs, column by column."""
    texts = Texts(comparison)
    nodes = [_node(comparison, texts, change) for change in comparison.changed.values()]
    nodes += [NodeDiff(unique_id=unique_id, change="removed") for unique_id in comparison.removed]
    return Diff(
        nodes=nodes,
        broken=verdict_of(comparison).newly_broken,
        causes=causes_of(comparison).at_the_beginning,
        notes=comparison.notes,
    )


class Texts:
    """The queries of both sides as written, each parsed when it is first asked for."""

    def __init__(self, comparison: Comparison) -> None:
        self.sides = (comparison.base, comparison.head)
        self.analyses = (comparison.base_analysis, comparison.head_analysis)
        self.changed = comparison.changed
        self._written: dict[tuple[int, str], QueryText] = {}

    def of(self, side: int, unique_id: str) -> QueryText:
        """The query of a node on base (0) or head (1); empty where there is none."""
        text = self._written.get((side, unique_id))
        if text is None:
            project = self.sides[side]
            node = project.nodes.get(unique_id)
            text = QueryText()
            if node is not None and node.resource_type in SEMANTIC:
                analysed = self.analyses[side].nodes.get(unique_id)
                if analysed is not None:
                    pairs = zip(analysed.columns, analysed.expressions, strict=True)
                    text = QueryText({name.lower(): [text] for name, text in pairs if text})
            elif node is not None and node.compiled_code and not node.is_python:
                text = text_of_query(node.compiled_code, dialect_of(project.metadata.adapter_type))
            self._written[side, unique_id] = text
        return text

    def definition(self, side: int, unique_id: str, column: str) -> str | None:
        """The SQL that computes a column, over the relations its query reads where that is known."""
        text, name = self.of(side, unique_id), column.lower()
        return text.definitions.get(name) or next(reversed(text.columns.get(name, [])), None)

    def column(self, unique_id: str, before: str, after: str) -> tuple[str | None, str | None]:
        """The SQL of a column on both sides: over relations, or else where it first differs.

        What is the same over relations, or too long to tell, is looked for on the way into CTEs. If it is
        the same all along and its relation has the rows that it had, it is the rows of a CTE that differ: then
        these are the clauses that only one side has.
        """
        whole = self.definition(0, unique_id, before), self.definition(1, unique_id, after)
        if whole[0] != whole[1]:
            return whole
        then = self.of(0, unique_id).columns.get(before.lower(), [])
        now = self.of(1, unique_id).columns.get(after.lower(), [])
        for a, b in zip(then, now, strict=False):
            if a != b:
                return a, b
        change = self.changed.get(unique_id)
        if (
            whole[0] is not None
            and change is not None
            and change.kind == "changed"
            and not change.rows
        ):
            clauses = ["\n".join(texts) or None for texts in self.rows(unique_id)]
            if clauses[0] != clauses[1]:
                return clauses[0], clauses[1]
        return whole

    def rows(self, unique_id: str) -> tuple[list[str], list[str]]:
        """The clauses and settings that decide rows which only one side has."""
        base, head = (project.nodes.get(unique_id) for project in self.sides)
        then = self.of(0, unique_id).clauses
        now = self.of(1, unique_id).clauses
        before, after = list((then - now).elements()), list((now - then).elements())
        if base is not None and head is not None:
            settings = [
                _settings(node, side.metadata.adapter_type)
                for node, side in zip((base, head), self.sides, strict=True)
            ]
            before += [text for text in settings[0] if text not in settings[1]]
            after += [text for text in settings[1] if text not in settings[0]]
        return before, after


def _settings(node: Node, adapter: str | None) -> list[str]:
    settings = [f"{when}: {' '.join(sql.split())}" for when, sql in hooks_of(node)]
    if node.config.get("sql_header"):
        settings.append(f"sql_header: {' '.join(str(node.config['sql_header']).split())}")
    settings += [f"{k}: {v}" for k, v in counted(node, adapter)]
    if node.materialized == "incremental" or node.resource_type == "snapshot":
        settings += [f"{k}: {node.config[k]}" for k in OF_COLUMNS if node.config.get(k)]
        settings += branches(node.raw_code)
    return settings


def _node(comparison: Comparison, texts: Texts, change: NodeChange) -> NodeDiff:
    unique_id = change.unique_id
    base, head = comparison.base, comparison.head
    predecessors = comparison.predecessors
    if change.kind == "added":
        columns = [
            ColumnDiff(name=name, change="added", after=texts.column(unique_id, name, name)[1])
            for name in change.added
        ]
        return NodeDiff(unique_id=unique_id, change="added", columns=columns)
    edited = _edited(base, head, unique_id) or unique_id in comparison.modified
    columns = []
    for name in change.added:
        was = change.renamed.get(name)
        if was is not None:
            columns.append(ColumnDiff(name=name, change="renamed", before=was, after=name))
        else:
            after = texts.column(unique_id, name, name)[1]
            columns.append(ColumnDiff(name=name, change="added", after=after))
    renamed = set(change.renamed.values())
    for name in change.removed:
        if name not in renamed:
            before = texts.column(unique_id, name, name)[0]
            columns.append(ColumnDiff(name=name, change="removed", before=before))
    for name in change.redefined:
        before, after = texts.column(unique_id, name, name) if edited else (None, None)
        began = predecessors.get((unique_id, name)) is None
        own = began or before != after
        columns.append(
            ColumnDiff(
                name=name,
                change="redefined" if own else "upstream",
                before=before if own else None,
                after=after if own else None,
            )
        )
    columns += (
        ColumnDiff(name=name, change="retyped", before=was, after=now)
        for name, (was, now) in retyped(base, head, unique_id).items()
    )
    rows = None
    if change.rows:
        before_rows, after_rows = texts.rows(unique_id) if edited else ([], [])
        own = bool(before_rows or after_rows) or predecessors.get((unique_id, ROWS)) is None
        rows = RowsDiff(
            change="redefined" if own else "upstream", before=before_rows, after=after_rows
        )
    by_itself = (
        any(column.change != "upstream" for column in columns)
        or (rows is not None and rows.change != "upstream")
        or (change.reordered and edited)
    )
    return NodeDiff(
        unique_id=unique_id,
        change="changed" if by_itself else "downstream",
        rows=rows,
        columns=columns,
        reordered=change.reordered,
    )


def _edited(base: Project, head: Project, unique_id: str) -> bool:
    then, now = base.nodes.get(unique_id), head.nodes.get(unique_id)
    if then is None or now is None or then.compiled_code != now.compiled_code:
        return True
    return defined(then) != defined(now)
