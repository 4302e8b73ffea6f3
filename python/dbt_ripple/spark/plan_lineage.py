"""Column dependencies of a query as Spark's own analyser sees them.

Spark resolves every name of a query to an expression id. This module reads the analysed plan
(`QueryExecution.analyzed().toJSON()`, nothing is run) and walks those ids down to the columns of
base tables. It shares no code with `dbt_ripple.flow` but the numbers of the kinds, so that the two
can be compared: the tests' oracle reads plans with it (`tests/oracle`), and `track.dataframe` does.

What it guarantees: every plan node and every expression that can bring in a column is walked, and a
plan node it does not know raises `PlanGapError` rather than being passed over.

Conventions, where Catalyst itself has no opinion (they are those of `dbt_ripple.flow`):

* what decides *which* value is taken is indirect: conditions of CASE, IF, NULLIF, NVL2, DECODE and
  FILTER are CONDITIONAL, a window's partition and order are WINDOW, an order inside an aggregate is
  SORT. The first argument of NULLIF is a value and a condition;
* a scalar subquery's value comes from its output; its rows and what it correlates with are indirect;
* EXISTS and IN are conditions: of the row set where they filter, of the column where they are shown;
* EXCEPT and INTERSECT: the value comes from the left; both sides' columns are row sources, and
  what decides the right side's rows is a FILTER of the left's;
* FIRST_VALUE and LAST_VALUE over a window pick a row's value: TRANSFORMATION, not AGGREGATION;
* the row set depends on conditions, groupings, DISTINCT, ORDER BY, generators and, inside joins, on
  both sides. ``*rows*`` edges (which table's rows) are not compared: only columns are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dbt_ripple.flow.ir import (
    AGGREGATION,
    CONDITIONAL,
    DIRECT,
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    SORT,
    TRANSFORMATION,
    WINDOW,
)

Source = tuple[str, str]
"""A base column: the table's name (as the catalog has it, without the catalog), the column's."""

Deps = dict[Source, int]
"""What something depends on, with the union of the kinds."""


class PlanGapError(Exception):
    """The plan holds something that cannot be read here: its columns are not known."""


@dataclass
class Reading:
    """What Spark's analyser says of one query.

    Attributes:
        names: output columns, in order.
        columns: what each depends on.
        rows: what the row set depends on.
        types: output columns with their Spark types (empty where not asked of Spark).
    """

    names: list[str]
    columns: list[Deps]
    rows: Deps
    types: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class PlanNode:
    """A node of a plan or an expression, out of the flat JSON."""

    kind: str
    fields: dict[str, Any]
    children: list[PlanNode] = field(default_factory=list)


@dataclass
class Plan:
    """A walked plan: its output attributes by position, and its row set."""

    ids: list[int]
    names: list[str]
    columns: list[Deps]
    rows: Deps

    def env(self) -> dict[int, Deps]:
        """What each id stands for."""
        return dict(zip(self.ids, self.columns, strict=True))


def read_plan(flat: list[dict[str, Any]], relations: Mapping[int, str] | None = None) -> Reading:
    """Walk an analysed plan as Spark writes it in JSON.

    Args:
        flat: the plan.
        relations: of expression ids of leaves what the leaf is called; those of leaves that are not here
            come from nowhere. By default each leaf is a table of the catalog, called as it is there.

    Raises:
        PlanGapError: the plan has a node that is not known here.
    """
    plan = _PlanWalk(relations).plan(_tree(flat), {})
    return Reading(plan.names, plan.columns, plan.rows)


def _tree(flat: list[dict[str, Any]]) -> PlanNode:
    """The tree of a pre-order list; `num-children` says how far each node reaches."""
    position = 0

    def build() -> PlanNode:
        nonlocal position
        raw = flat[position]
        position += 1
        node = PlanNode(raw["class"].rsplit(".", 1)[-1].rstrip("$"), raw)
        node.children = [build() for _ in range(raw["num-children"])]
        return node

    return build()


def _is_expression(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and "class" in value[0]
    )


def _id(node: PlanNode) -> int:
    return int(node.fields["exprId"]["id"])


def compose(outer: int, inner: int) -> int:
    """Kinds through kinds: an indirect use stays one; direct through direct is the stronger."""
    result = outer & ~DIRECT
    if outer & DIRECT:
        result |= inner & ~DIRECT
        for o in (IDENTITY, TRANSFORMATION, AGGREGATION):
            for i in (IDENTITY, TRANSFORMATION, AGGREGATION):
                if outer & o and inner & i:
                    result |= max(o, i)
    return result


def add(into: Deps, more: Deps, kind: int = IDENTITY) -> None:
    """Add dependencies as seen through a use of this kind."""
    for source, mask in more.items():
        into[source] = into.get(source, 0) | compose(kind, mask)


def _test(kind: int) -> int:
    """The kind of a condition where the result is used in this kind."""
    return CONDITIONAL if kind & DIRECT else kind


def _deeper(kind: int) -> int:
    return TRANSFORMATION if kind == IDENTITY else kind


_RANKS: Final = frozenset({"RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "NTile"})
_GROUPING_NUMBERS: Final = frozenset({"spark_grouping_id", "_gen_grouping_pos"})
_PICKS: Final = frozenset({"First", "Last", "NthValue"})

# Nodes that hand their only child's columns on, and change the rows (if at all) by constants alone.
_PASSING: Final = frozenset(
    """
    SubqueryAlias View GlobalLimit LocalLimit Offset Tail Sample ResolvedHint PipeOperator
    Repartition CTERelationDef Subquery WithWindowDefinition CollectMetrics EventTimeWatermark
    InsertIntoHadoopFsRelationCommand InsertIntoHiveTable
    """.split()
)
_LEAVES: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "LogicalRDD"})
_TABLES: Final = frozenset({"LogicalRelation", "HiveTableRelation", "DataSourceV2Relation"})


class _PlanWalk:
    """One statement: its CTEs and recursions by id."""

    def __init__(self, relations: Mapping[int, str] | None) -> None:
        self.relations = relations
        self.definitions: dict[int, PlanNode] = {}
        self.ctes: dict[int, Plan] = {}
        self.loops: dict[int, Plan] = {}
        self.environments: dict[int, dict[int, Deps]] = {}

    # -- plans ----------------------------------------------------------------------------------

    def plan(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        """Walk a plan; `outer` is what the query around it can see."""
        kind = node.kind
        if kind in _TABLES:
            return self.table(node)
        if kind in _LEAVES:
            return self.attributes(node, lambda _: {})
        if kind in _PASSING and len(node.children) == 1:
            return self.plan(node.children[0], outer)
        handler: Callable[[PlanNode, dict[int, Deps]], Plan] | None = getattr(
            self, "plan_" + kind.lower(), None
        )
        if handler is None:
            raise PlanGapError(f"plan node {node.fields['class']}")
        return handler(node, outer)

    def attributes(self, node: PlanNode, source: Callable[[PlanNode], Deps]) -> Plan:
        """A leaf: its output attributes and what each stands for."""
        trees = [_tree(a) for a in node.fields["output"]] if "output" in node.fields else []
        if node.kind == "Range":
            trees = [_tree(a) for a in node.fields.get("output", [])]
        return Plan(
            [_id(a) for a in trees],
            [a.fields["name"] for a in trees],
            [source(a) for a in trees],
            {},
        )

    def table(self, node: PlanNode) -> Plan:
        if self.relations is not None:
            return self.relation(node, self.relations)
        catalog_table = node.fields.get("catalogTable") or node.fields.get("tableMeta")
        if catalog_table is None:
            raise PlanGapError(f"{node.kind} without a catalog table")
        identifier = catalog_table["identifier"]
        name = ".".join(p for p in (identifier.get("database"), identifier["table"]) if p).lower()
        if node.kind == "HiveTableRelation":
            node.fields["output"] = [*node.fields["dataCols"], *node.fields["partitionCols"]]
        return self.attributes(node, lambda a: {(name, a.fields["name"].lower()): IDENTITY})

    def relation(self, node: PlanNode, relations: Mapping[int, str]) -> Plan:
        """A leaf that is looked up by its ids."""
        if node.kind == "HiveTableRelation":
            node.fields["output"] = [*node.fields["dataCols"], *node.fields["partitionCols"]]

        def source(attribute: PlanNode) -> Deps:
            name = relations.get(_id(attribute))
            return {} if name is None else {(name, attribute.fields["name"]): IDENTITY}

        return self.attributes(node, source)

    def plan_project(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        scope = _ExpressionScope(self, child.env(), outer)
        return self.outputs(node.fields["projectList"], scope, dict(child.rows))

    def outputs(
        self, expressions: list[list[dict[str, Any]]], scope: _ExpressionScope, rows: Deps
    ) -> Plan:
        trees = [_tree(e) for e in expressions]
        # A column of the outer query shown as it is stands there under its own id.
        named = [_tree(e.fields["e"]) if e.kind == "OuterReference" else e for e in trees]
        return Plan(
            [_id(e) for e in named],
            [e.fields["name"] for e in named],
            [scope.deps(e, IDENTITY) for e in trees],
            rows,
        )

    def plan_aggregate(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child_node = node.children[0]
        child = self.plan(child_node, outer)
        scope = _ExpressionScope(self, child.env(), outer)
        outs = [_tree(e) for e in node.fields["aggregateExpressions"]]
        rows = dict(child.rows)
        if any(_find(o, "PivotFirst") for o in outs):
            # PIVOT in two steps: the first groups by the pivot column too, the second takes it
            # away again. Only what the second groups by decides the rows.
            below = self.plan(child_node.children[0], outer)
            rows = dict(below.rows)
        for e in node.fields["groupingExpressions"]:
            add(rows, scope.deps(_tree(e), GROUP_BY))
        return self.outputs(node.fields["aggregateExpressions"], scope, rows)

    def plan_filter(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        condition = _tree(node.fields["condition"])
        add(rows, _ExpressionScope(self, child.env(), outer).deps(condition, FILTER))
        return Plan(child.ids, child.names, child.columns, rows)

    def plan_sort(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        scope = _ExpressionScope(self, child.env(), outer)
        for e in node.fields["order"]:
            add(rows, scope.deps(_tree(e), SORT))
        return Plan(child.ids, child.names, child.columns, rows)

    def plan_repartitionbyexpression(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        scope = _ExpressionScope(self, child.env(), outer)
        for e in node.fields["partitionExpressions"]:
            add(rows, scope.deps(_tree(e), SORT))
        return Plan(child.ids, child.names, child.columns, rows)

    plan_rebalancepartitions = plan_repartitionbyexpression

    def plan_distinct(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        for deps in child.columns:
            add(rows, deps, GROUP_BY)
        return Plan(child.ids, child.names, child.columns, rows)

    def plan_deduplicate(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        for key in node.fields["keys"]:
            add(rows, _ExpressionScope(self, child.env(), outer).deps(_tree(key), GROUP_BY))
        return Plan(child.ids, child.names, child.columns, rows)

    def plan_join(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        left, right = (self.plan(c, outer) for c in node.children)
        rows = dict(left.rows)
        add(rows, right.rows)
        both = left.env() | right.env()
        if node.fields.get("condition"):
            scope = _ExpressionScope(self, both, outer)
            add(rows, scope.deps(_tree(node.fields["condition"]), JOIN))
        kind = json.dumps(node.fields["joinType"])
        if "LeftSemi" in kind or "LeftAnti" in kind:
            return Plan(left.ids, left.names, left.columns, rows)
        return Plan(
            left.ids + right.ids, left.names + right.names, left.columns + right.columns, rows
        )

    def plan_lateraljoin(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        left = self.plan(node.children[0], outer)
        right = self.plan(_tree(_tree(node.fields["right"]).fields["plan"]), outer | left.env())
        rows = dict(left.rows)
        add(rows, right.rows)
        if node.fields.get("condition"):
            scope = _ExpressionScope(self, left.env() | right.env(), outer)
            add(rows, scope.deps(_tree(node.fields["condition"]), JOIN))
        return Plan(
            left.ids + right.ids, left.names + right.names, left.columns + right.columns, rows
        )

    def plan_union(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        branches = [self.plan(c, outer) for c in node.children]
        columns: list[Deps] = [{} for _ in branches[0].columns]
        rows: Deps = {}
        for branch in branches:
            add(rows, branch.rows)
            for into, deps in zip(columns, branch.columns, strict=True):
                add(into, deps)
        return Plan(branches[0].ids, branches[0].names, columns, rows)

    def plan_except(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        left, right = (self.plan(c, outer) for c in node.children)
        rows = dict(left.rows)
        add(rows, right.rows, FILTER)
        for deps in (*left.columns, *right.columns):
            add(rows, deps, FILTER)
        return Plan(left.ids, left.names, left.columns, rows)

    plan_intersect = plan_except

    def plan_generate(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        scope = _ExpressionScope(self, child.env(), outer)
        generator = _tree(node.fields["generator"])
        add(rows, scope.deps(generator, JOIN))
        generated = [_tree(a) for a in node.fields["generatorOutput"]]
        left_out = set(node.fields.get("unrequiredChildIndex") or [])
        kept = [i for i in range(len(child.ids)) if i not in left_out]
        return Plan(
            [child.ids[i] for i in kept] + [_id(a) for a in generated],
            [child.names[i] for i in kept] + [a.fields["name"] for a in generated],
            [child.columns[i] for i in kept]
            + [self.generated(generator, i, len(generated), scope) for i in range(len(generated))],
            rows,
        )

    def generated(self, generator: PlanNode, i: int, width: int, scope: _ExpressionScope) -> Deps:
        """What column `i` of a generator comes from; STACK says it cell by cell."""
        if generator.kind != "Stack":
            return scope.deps(generator, TRANSFORMATION)
        deps: Deps = {}
        for cell in generator.children[1 + i :: width]:
            add(deps, scope.deps(cell, TRANSFORMATION))
        return deps

    def plan_window(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        scope = _ExpressionScope(self, child.env(), outer)
        windows = self.outputs(node.fields["windowExpressions"], scope, {})
        return Plan(
            child.ids + windows.ids,
            child.names + windows.names,
            child.columns + windows.columns,
            child.rows,
        )

    def plan_expand(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        scope = _ExpressionScope(self, child.env(), outer)
        attributes = [_tree(a) for a in node.fields["output"]]
        columns: list[Deps] = [{} for _ in attributes]
        projections = node.fields.get("projections")
        if projections and all(len(p) == len(attributes) for p in projections):
            for projection in projections:
                for into, e in zip(columns, projection, strict=True):
                    add(into, scope.deps(_tree(e), IDENTITY))
        elif {a.fields["name"] for a in attributes[len(child.columns) :]} <= _GROUPING_NUMBERS:
            # Grouping sets: the child's columns, each kept or nulled, then the grouping's number.
            columns = [*child.columns, *({} for _ in attributes[len(child.columns) :])]
        else:
            raise PlanGapError("Expand without projections")
        return Plan(
            [_id(a) for a in attributes],
            [a.fields["name"] for a in attributes],
            columns,
            child.rows,
        )

    def plan_scripttransformation(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        """A program that makes rows of rows: nobody knows of which columns it makes which."""
        rows: Deps = {}
        every: Deps = {}
        for child in (self.plan(each, outer) for each in node.children):
            add(rows, child.rows)
            for deps in child.columns:
                add(every, deps, TRANSFORMATION)
                add(rows, deps, JOIN)
        attributes = [_tree(a) for a in node.fields["output"]]
        return Plan(
            [_id(a) for a in attributes],
            [a.fields["name"] for a in attributes],
            [every for _ in attributes],
            rows,
        )

    plan_mapinpandas = plan_mapinarrow = plan_pythonmapinarrow = plan_scripttransformation
    plan_flatmapgroupsinpandas = plan_flatmapgroupsinarrow = plan_scripttransformation
    plan_flatmapcogroupsinpandas = plan_flatmapcogroupsinarrow = plan_scripttransformation

    def plan_createdatasourcetableasselectcommand(
        self, node: PlanNode, outer: dict[int, Deps]
    ) -> Plan:
        return self.plan(_tree(node.fields["query"]), outer)

    plan_createhivetableasselectcommand = plan_createdatasourcetableasselectcommand

    def plan_createviewcommand(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        return self.plan(_tree(node.fields["plan"]), outer)

    # -- CTEs and recursion ---------------------------------------------------------------------

    def plan_withcte(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        definitions = [node.children[i] for i in node.fields["cteDefs"]]
        for definition in definitions:
            number = int(definition.fields["id"])
            self.definitions[number] = definition
            self.environments[number] = outer
        return self.plan(node.children[node.fields["plan"]], outer)

    def plan_cterelationref(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        number = int(node.fields["cteId"])
        definition_output = self.ctes.get(number)
        if definition_output is None:
            definition = self.definitions.get(number)
            if definition is None:
                raise PlanGapError(f"reference to CTE {number}, which is not defined here")
            definition_output = self.plan(definition.children[0], self.environments[number])
            self.ctes[number] = definition_output
        return self.reference(node, definition_output)

    def reference(self, node: PlanNode, target: Plan) -> Plan:
        """The same columns by position under new ids."""
        attributes = [_tree(a) for a in node.fields["output"]]
        if len(attributes) != len(target.columns):
            raise PlanGapError(f"{node.kind} of another width than what it refers to")
        return Plan(
            [_id(a) for a in attributes],
            [a.fields["name"] for a in attributes],
            target.columns,
            target.rows,
        )

    def plan_unionloop(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        """A recursion: what the anchor and the step depend on, to a fixpoint."""
        number = int(node.fields["id"])
        anchor = self.plan(node.children[0], outer)
        current = anchor
        while True:
            self.loops[number] = current
            step = self.plan(node.children[1], outer)
            columns = [dict(d) for d in current.columns]
            rows = dict(current.rows)
            for into, deps in zip(columns, step.columns, strict=True):
                add(into, deps)
            add(rows, step.rows)
            if columns == current.columns and rows == current.rows:
                break
            current = Plan(anchor.ids, anchor.names, columns, rows)
        ids = [int(i["id"]) for i in node.fields["outputAttrIds"]]
        return Plan(ids, anchor.names, current.columns, current.rows)

    def plan_unionloopref(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        return self.reference(node, self.loops[int(node.fields["loopId"])])


def _find(node: PlanNode, kind: str) -> bool:
    return node.kind == kind or any(_find(c, kind) for c in node.children)


def _attributes(node: PlanNode) -> Iterable[PlanNode]:
    """The column references of an expression, those to an outer query included."""
    if node.kind == "AttributeReference":
        yield node
    elif node.kind == "OuterReference":
        # Read again where it is used: the tree of `e` is made here, so it is put back.
        if not isinstance(node.fields["e"], PlanNode):
            node.fields = {**node.fields, "e": _tree(node.fields["e"])}
        yield node.fields["e"]
    for child in node.children:
        yield from _attributes(child)


def _subqueries(node: PlanNode) -> bool:
    return _is_expression(node.fields.get("plan")) or any(map(_subqueries, node.children))


class _ExpressionScope:
    """What expressions of one plan node can see."""

    def __init__(self, walk: _PlanWalk, env: dict[int, Deps], outer: dict[int, Deps]) -> None:
        self.walk = walk
        self.env = env
        self.outer = outer
        self.common: PlanNode | None = None

    def deps(self, node: PlanNode, kind: int) -> Deps:
        """What an expression used in this kind depends on."""
        result: Deps = {}
        self.add_expression(node, kind, result)
        return result

    def add_each(self, nodes: Iterable[PlanNode], kind: int, result: Deps) -> None:
        for node in nodes:
            self.add_expression(node, kind, result)

    def add_column(
        self, attribute: PlanNode, kind: int, result: Deps, env: dict[int, Deps]
    ) -> None:
        number = _id(attribute)
        deps = env.get(number)
        if deps is None:
            deps = self.outer.get(number)
        if deps is None:
            raise PlanGapError(f"attribute {attribute.fields['name']}#{number} comes from nowhere")
        add(result, deps, kind)

    def add_expression(self, node: PlanNode, kind: int, result: Deps) -> None:
        name = node.kind
        if name == "AttributeReference":
            self.add_column(node, kind, result, self.env)
        elif name == "OuterReference":
            inner_reference = node.fields["e"]
            if not isinstance(inner_reference, PlanNode):
                inner_reference = _tree(inner_reference)
            self.add_column(inner_reference, kind, result, {})
        elif name in ("Alias", "Cast", "AnsiCast"):
            self.add_expression(node.children[0], kind, result)
        elif name == "CaseWhen":
            # (condition, value) pairs, then ELSE.
            pairs = len(node.children) // 2 * 2
            self.add_each(node.children[0:pairs:2], _test(kind), result)
            self.add_each(node.children[1:pairs:2], _deeper(kind), result)
            self.add_each(node.children[pairs:], _deeper(kind), result)
        elif name == "If":
            self.add_expression(node.children[0], _test(kind), result)
            self.add_each(node.children[1:], _deeper(kind), result)
        elif name in ("NullIf", "NullIfZero", "Nvl2", "Decode"):
            self.add_each(node.children, kind, result)  # what replaces it says what chooses
        elif name == "With" and len(node.children) == 2:
            # One common expression: every reference in the first child is to it.
            child, definition = node.children
            saved, self.common = self.common, definition.children[0]
            self.add_expression(child, kind, result)
            self.common = saved
        elif name == "CommonExpressionRef" and self.common is not None:
            self.add_expression(self.common, kind, result)
        elif name == "PivotFirst":
            self.add_expression(node.children[0], _test(kind), result)
            self.add_expression(node.children[1], self.aggregate(kind), result)
        elif name == "AggregateExpression":
            self.add_expression(node.children[0], self.aggregate(kind), result)
            self.add_each(node.children[1:], _test(kind), result)  # FILTER (WHERE ...)
        elif name == "SortOrder":
            self.add_each(node.children, SORT if kind & DIRECT else kind, result)
        elif name == "WindowExpression":
            function, spec = node.children
            over = WINDOW if kind & DIRECT else kind
            if function.kind == "AggregateExpression" and function.children[0].kind in _PICKS:
                self.add_each(function.children[0].children, _deeper(kind), result)
                self.add_each(function.children[1:], _test(kind), result)
            else:
                self.add_expression(
                    function, over if function.kind in _RANKS else _deeper(kind), result
                )
            for part in spec.children:
                self.add_each(part.children if part.kind == "SortOrder" else [part], over, result)
        elif name == "ScalarSubquery":
            inner = self.subquery(node)
            add(result, inner.columns[0], kind)
            # Which rows it saw is indirect already, whatever the value is used for.
            add(result, inner.rows, kind)
        elif name == "Exists":
            add(result, self.subquery(node).rows, _test(kind))
        elif name == "InSubquery":
            self.add_each(node.children[:-1], _deeper(kind), result)
            inner = self.subquery(node.children[-1])
            for deps in (*inner.columns, inner.rows):
                add(result, deps, _test(kind))
        elif name == "FunctionTableSubqueryArgumentExpression":
            inner = self.subquery(node)
            for deps in (*inner.columns, inner.rows):
                add(result, deps, kind)
        elif "plan" in node.fields and _is_expression(node.fields["plan"]):
            raise PlanGapError(f"subquery {node.fields['class']}")
        elif "replacement" in node.fields and (parameters := self.parameters(node)):
            # A function Spark expands: its own arguments count, not how it is expanded.
            self.add_each(parameters, _deeper(kind), result)
        else:
            self.add_each(node.children, _deeper(kind), result)

    def aggregate(self, kind: int) -> int:
        return AGGREGATION if kind & DIRECT else kind

    def parameters(self, node: PlanNode) -> list[PlanNode]:
        """The arguments of a function that Spark replaces by others, as they were written.

        Spark keeps them for show and does not renumber their attributes where it renumbers those
        of the replacement (both sides of a self join): they are renumbered here, by name.
        Empty where that cannot be done: then the replacement has to be read.
        """
        parameters: list[PlanNode] = []
        for key, value in node.fields.items():
            if key == "replacement":
                continue
            if _is_expression(value):
                parameters.append(_tree(value))
            elif isinstance(value, list) and value and all(map(_is_expression, value)):
                parameters.extend(map(_tree, value))
        if any(_subqueries(f) for f in parameters):
            return []  # a subquery's plan would be an older one: read what replaced it
        fresh = {_id(a): a for c in node.children for a in _attributes(c)}
        for attribute in (a for f in parameters for a in _attributes(f)):
            if _id(attribute) not in fresh:
                same = {i for i, a in fresh.items() if a.fields["name"] == attribute.fields["name"]}
                if len(same) != 1:
                    return []
                attribute.fields = {
                    **attribute.fields,
                    "exprId": fresh[same.pop()].fields["exprId"],
                }
        return parameters

    def subquery(self, node: PlanNode) -> Plan:
        return self.walk.plan(_tree(node.fields["plan"]), self.outer | self.env)
