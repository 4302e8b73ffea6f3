"""Random small edits of a query: one literal, column, operator, join, flag or clause at a time."""

from __future__ import annotations

import random
from typing import Any, Final

import sqlglot
from sqlglot import exp

_SWAPS: Final[dict[type, type]] = {
    exp.Add: exp.Sub,
    exp.Sub: exp.Add,
    exp.Mul: exp.Add,
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.GT,
    exp.LTE: exp.LT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.And: exp.Or,
    exp.Or: exp.And,
    exp.Sum: exp.Max,
    exp.Max: exp.Min,
    exp.Min: exp.Max,
    exp.Avg: exp.Sum,
    exp.Greatest: exp.Least,
}
_QUERIES: Final = (exp.Select, exp.SetOperation, exp.Subquery)


class Editor:
    """Makes edits that keep a query valid more often than not; the same seed makes the same ones."""

    def __init__(self, seed: int, types: dict[str, str]) -> None:
        """Take the columns there are, with their types: one is swapped for another of its type."""
        self.random = random.Random(seed)
        self.types = types

    def edit(self, sql: str) -> str | None:
        """One edit of a Spark query, or None where nothing was found to edit."""
        tree = sqlglot.parse_one(sql, dialect="spark")
        nodes: list[Any] = list(tree.walk())
        self.random.shuffle(nodes)
        for node in nodes:
            if not _counts(node):
                continue
            if self.literal(node) or self.column(node) or self.other(node, tree):
                return tree.sql("spark")
        return None

    def literal(self, node: Any) -> bool:
        if not isinstance(node, exp.Literal):
            return False
        if node.is_string:
            node.replace(exp.Literal.string(node.this + "x"))
        else:
            node.replace(exp.Literal.number(str(int(float(node.this)) + 1)))
        return True

    def column(self, node: Any) -> bool:
        if not isinstance(node, exp.Column) or node.name not in self.types:
            return False
        kind = self.types[node.name]
        others = [c for c, k in self.types.items() if k == kind and c != node.name]
        if others:
            node.this.set("this", self.random.choice(others))
        return bool(others)

    def other(self, node: Any, tree: Any) -> bool:
        """Operators, joins, clauses and flags."""
        if type(node) in _SWAPS:
            node.replace(_SWAPS[type(node)](**node.args))
            return node is not tree
        if isinstance(node, exp.Join) and (node.args.get("using") or node.args.get("on")):
            if node.kind in ("SEMI", "ANTI"):
                node.set("kind", "ANTI" if node.kind == "SEMI" else "SEMI")
            else:
                sides = [s for s in ("LEFT", "RIGHT", "FULL", "") if s != node.side]
                node.set("side", self.random.choice(sides))
            return True
        if isinstance(node, exp.Select):
            clauses = [k for k in ("where", "having") if node.args.get(k)]
            group = node.args.get("group")
            if group is not None and len(group.expressions) > 1:
                clauses.append("group")
            clause = self.random.choice(["distinct", *clauses])
            if clause == "distinct":
                node.set("distinct", None if node.args.get("distinct") else exp.Distinct())
            elif clause == "group" and group is not None:
                group.set("expressions", group.expressions[:-1])
            else:
                node.set(clause, None)
            return True
        if isinstance(node, exp.SetOperation):
            node.set("distinct", not node.args.get("distinct"))
            return True
        if isinstance(node, exp.Ordered):
            node.set("desc", not node.args.get("desc"))
            return True
        return False


def _counts(node: Any) -> bool:
    """Whether what stands here can change the data.

    The order of rows without a LIMIT is no part of it (rule 2 of the design), nor are the select
    list of EXISTS, a sample's or a hint's own words in Spark's plan, and a command's properties. A
    value that a PIVOT makes a column of counts where that column is sure to be read, by a `*`: it
    drops no row, but Spark plans it whether or not anybody reads it.
    """
    child = node
    above = node.parent
    while above is not None:
        if isinstance(above, (exp.Order, exp.Sort, exp.Cluster, exp.Distribute)):
            owner = above.parent
            if isinstance(owner, _QUERIES) and not owner.args.get("limit"):
                return False
        if isinstance(above, (exp.Properties, exp.Hint, exp.TableSample)):
            return False
        if isinstance(above, exp.In) and isinstance(above.parent, exp.Pivot):
            reader = above.find_ancestor(exp.Select)
            while reader is not None:
                if not reader.is_star:
                    return False
                reader = reader.find_ancestor(exp.Select)
        if isinstance(above, exp.Select) and child.arg_key == "expressions":
            inside = above.parent
            while isinstance(inside, (exp.Subquery, exp.Paren)):
                inside = inside.parent
            if isinstance(inside, exp.Exists):
                return False
        child, above = above, above.parent
    return not isinstance(node, (exp.Order, exp.Sort, exp.Cluster, exp.Distribute))
