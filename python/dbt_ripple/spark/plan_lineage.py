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
  both sides. ``*rows*`` edges (which table's rows) are not compared, only columns are; of a DataFrame
  what counts rows has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dbt_ripple.flow.ir import (
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    SORT,
    TRANSFORMATION,
)
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.spark.plan_expressions import (
    Deps,
    ExpressionScope,
    Plan,
    PlanGapError,
    PlanNode,
    add,
    expression_id,
    tree_of,
)


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


def read_plan(flat: list[dict[str, Any]], relations: Mapping[int, str] | None = None) -> Reading:
    """Walk an analysed plan as Spark writes it in JSON.

    Args:
        flat: the plan.
        relations: of expression ids of leaves what the leaf is called; those of leaves that are not here
            come from nowhere. By default each leaf is a table of the catalog, called as it is there.

    Raises:
        PlanGapError: the plan has a node that is not known here.
    """
    plan = _PlanWalk(relations).plan(tree_of(flat), {})
    return Reading(plan.names, plan.columns, plan.rows)


_GROUPING_NUMBERS: Final = frozenset({"spark_grouping_id", "_gen_grouping_pos"})

# Nodes that pass on their only child's columns, and change the rows (if at all) by constants alone.
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
        trees = [tree_of(a) for a in node.fields["output"]] if "output" in node.fields else []
        if node.kind == "Range":
            trees = [tree_of(a) for a in node.fields.get("output", [])]
        return Plan(
            [expression_id(a) for a in trees],
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
            name = relations.get(expression_id(attribute))
            return {} if name is None else {(name, attribute.fields["name"]): IDENTITY}

        return self.attributes(node, source)

    def counted(self, node: PlanNode, plan: Plan) -> Deps:
        """The rows of the relations below; of tables of the catalog they are not compared."""
        if self.relations is None:
            return {}
        keys = {key for deps in (*plan.columns, plan.rows) for key, _ in deps}
        below = [node]
        while below:  # a relation of which no column is passed on
            one = below.pop()
            below += one.children
            if one.kind in _TABLES:
                keys |= {key for deps in self.plan(one, {}).columns for key, _ in deps}
        return {(key, ROWS): IDENTITY for key in sorted(keys)}

    def plan_project(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        scope = ExpressionScope(self.plan, child.env(), outer)
        return self.outputs(node.fields["projectList"], scope, dict(child.rows))

    def outputs(
        self, expressions: list[list[dict[str, Any]]], scope: ExpressionScope, rows: Deps
    ) -> Plan:
        trees = [tree_of(e) for e in expressions]
        # A column of the outer query shown as it is stands there under its own id.
        named = [tree_of(e.fields["e"]) if e.kind == "OuterReference" else e for e in trees]
        return Plan(
            [expression_id(e) for e in named],
            [e.fields["name"] for e in named],
            [scope.deps(e, IDENTITY) for e in trees],
            rows,
        )

    def plan_aggregate(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child_node = node.children[0]
        child = self.plan(child_node, outer)
        scope = ExpressionScope(self.plan, child.env(), outer, self.counted(child_node, child))
        outs = [tree_of(e) for e in node.fields["aggregateExpressions"]]
        rows = dict(child.rows)
        if any(_find(o, "PivotFirst") for o in outs):
            # PIVOT in two steps: the first groups by the pivot column too, the second takes it
            # away again. Only what the second groups by decides the rows.
            below = self.plan(child_node.children[0], outer)
            rows = dict(below.rows)
        for e in node.fields["groupingExpressions"]:
            add(rows, scope.deps(tree_of(e), GROUP_BY))
        return self.outputs(node.fields["aggregateExpressions"], scope, rows)

    def plan_filter(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        condition = tree_of(node.fields["condition"])
        add(rows, ExpressionScope(self.plan, child.env(), outer).deps(condition, FILTER))
        return Plan(child.ids, child.names, child.columns, rows)

    def plan_sort(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        scope = ExpressionScope(self.plan, child.env(), outer)
        for e in node.fields["order"]:
            add(rows, scope.deps(tree_of(e), SORT))
        return Plan(child.ids, child.names, child.columns, rows)

    def plan_repartitionbyexpression(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        rows = dict(child.rows)
        scope = ExpressionScope(self.plan, child.env(), outer)
        for e in node.fields["partitionExpressions"]:
            add(rows, scope.deps(tree_of(e), SORT))
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
            add(rows, ExpressionScope(self.plan, child.env(), outer).deps(tree_of(key), GROUP_BY))
        return Plan(child.ids, child.names, child.columns, rows)

    def plan_join(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        left, right = (self.plan(c, outer) for c in node.children)
        rows = dict(left.rows)
        add(rows, right.rows)
        both = left.env() | right.env()
        if node.fields.get("condition"):
            scope = ExpressionScope(self.plan, both, outer)
            add(rows, scope.deps(tree_of(node.fields["condition"]), JOIN))
        kind = json.dumps(node.fields["joinType"])
        if "LeftSemi" in kind or "LeftAnti" in kind:
            return Plan(left.ids, left.names, left.columns, rows)
        return Plan(
            left.ids + right.ids, left.names + right.names, left.columns + right.columns, rows
        )

    def plan_lateraljoin(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        left = self.plan(node.children[0], outer)
        right = self.plan(tree_of(tree_of(node.fields["right"]).fields["plan"]), outer | left.env())
        rows = dict(left.rows)
        add(rows, right.rows)
        if node.fields.get("condition"):
            scope = ExpressionScope(self.plan, left.env() | right.env(), outer)
            add(rows, scope.deps(tree_of(node.fields["condition"]), JOIN))
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
        scope = ExpressionScope(self.plan, child.env(), outer)
        generator = tree_of(node.fields["generator"])
        add(rows, scope.deps(generator, JOIN))
        generated = [tree_of(a) for a in node.fields["generatorOutput"]]
        left_out = set(node.fields.get("unrequiredChildIndex") or [])
        kept = [i for i in range(len(child.ids)) if i not in left_out]
        return Plan(
            [child.ids[i] for i in kept] + [expression_id(a) for a in generated],
            [child.names[i] for i in kept] + [a.fields["name"] for a in generated],
            [child.columns[i] for i in kept]
            + [self.generated(generator, i, len(generated), scope) for i in range(len(generated))],
            rows,
        )

    def generated(self, generator: PlanNode, i: int, width: int, scope: ExpressionScope) -> Deps:
        """What column `i` of a generator comes from; STACK says it cell by cell."""
        if generator.kind != "Stack":
            return scope.deps(generator, TRANSFORMATION)
        deps: Deps = {}
        for cell in generator.children[1 + i :: width]:
            add(deps, scope.deps(cell, TRANSFORMATION))
        return deps

    def plan_window(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        counted = self.counted(node.children[0], child)
        scope = ExpressionScope(self.plan, child.env(), outer, counted)
        windows = self.outputs(node.fields["windowExpressions"], scope, {})
        return Plan(
            child.ids + windows.ids,
            child.names + windows.names,
            child.columns + windows.columns,
            child.rows,
        )

    def plan_expand(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        child = self.plan(node.children[0], outer)
        scope = ExpressionScope(self.plan, child.env(), outer)
        attributes = [tree_of(a) for a in node.fields["output"]]
        columns: list[Deps] = [{} for _ in attributes]
        projections = node.fields.get("projections")
        if projections and all(len(p) == len(attributes) for p in projections):
            for projection in projections:
                for into, e in zip(columns, projection, strict=True):
                    add(into, scope.deps(tree_of(e), IDENTITY))
        elif {a.fields["name"] for a in attributes[len(child.columns) :]} <= _GROUPING_NUMBERS:
            # Grouping sets: the child's columns, each kept or nulled, then the grouping's number.
            columns = [*child.columns, *({} for _ in attributes[len(child.columns) :])]
        else:
            raise PlanGapError("Expand without projections")
        return Plan(
            [expression_id(a) for a in attributes],
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
        attributes = [tree_of(a) for a in node.fields["output"]]
        return Plan(
            [expression_id(a) for a in attributes],
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
        return self.plan(tree_of(node.fields["query"]), outer)

    plan_createhivetableasselectcommand = plan_createdatasourcetableasselectcommand

    def plan_createviewcommand(self, node: PlanNode, outer: dict[int, Deps]) -> Plan:
        return self.plan(tree_of(node.fields["plan"]), outer)

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
        attributes = [tree_of(a) for a in node.fields["output"]]
        if len(attributes) != len(target.columns):
            raise PlanGapError(f"{node.kind} of another width than what it refers to")
        return Plan(
            [expression_id(a) for a in attributes],
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
