"""PIVOT and UNPIVOT."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import AGGREGATION, CONDITIONAL, LoweredExpr, Pivot, Rel, Unpivot
from dbt_ripple.flow.lowering.clause_helpers import READ_OF_NAME, ClauseHelpers, refuse_unread
from dbt_ripple.flow.lowering.parse_tree import argument_names, verbatim
from dbt_ripple.flow.lowering.scope import Scope
from dbt_ripple.flow.reading.refusals import Unsupported

_COMMENT: Final = re.compile(r"\s*/\*.*?\*/", re.S)
_NAMES_A_COLUMN: Final = (
    exp.PivotAlias,
    exp.Alias,
    exp.Literal,
    exp.Cast,
    exp.Column,
    exp.Identifier,
    exp.Null,
    exp.Tuple,
)
"""Values of a PIVOT of which we know what the columns are called that they make."""
_READ_OF_PIVOT: Final = argument_names(
    """
    alias expressions fields unpivot columns include_nulls default_on_null identify_pivot_strings
    prefixed_pivot_columns pivot_column_naming value_columns_first
    """
)
_READ_OF_PIVOT_FIELD: Final = argument_names("this expressions")


_VALUES_FIRST: Final = frozenset({"bigquery", "fabric", "tsql"})
"""Dialects whose UNPIVOT puts the columns of values before that of their names."""
_VALUES_ARE_NAMES: Final = frozenset({"fabric", "tsql"})
_NAME_ALONE: Final = argument_names("this")


def _name_of(node: Any) -> str:
    return str(node.name)


def _identifier_of(node: Any) -> Any:
    return node.this if isinstance(node, exp.Column) else node


class Pivots(ClauseHelpers):
    """PIVOT and UNPIVOT."""

    def pivot(self, node: exp.Pivot, rel: Rel, columns: list[str]) -> Rel:
        scope = self.enter()
        self.add_source(None, None, rel, columns or None)
        args = node.args
        refuse_unread(node, _READ_OF_PIVOT)
        if args.get("unpivot"):
            unpivot = self.unpivot(node, rel, scope)
            self.leave()
            return unpivot
        aggregates = [
            self.lower_alone(e.this if isinstance(e, exp.Alias) else e, AGGREGATION)
            for e in node.expressions
        ]
        fields: list[LoweredExpr] = []
        values: list[bytes] = []
        listed = True
        for field in args.get("fields") or []:
            if not isinstance(field, exp.In):
                raise Unsupported("PIVOT without a list of values")
            if field.args.get("field"):
                raise Unsupported("PIVOT over the values of a type")
            refuse_unread(field, _READ_OF_PIVOT_FIELD)
            fields.append(self.lower_alone(field.this, CONDITIONAL))
            listed = listed and bool(field.expressions)
            each: list[bytes] = []
            for v in field.expressions:
                if isinstance(v, exp.PivotAny):  # the order is that of its columns
                    fields.append(LoweredExpr(digest(verbatim(v)), {}, {}))
                elif isinstance(v, exp.Query):
                    fields.append(self.lower_alone(v, CONDITIONAL))
                else:
                    each.append(self.pivot_value(v.this if isinstance(v, exp.PivotAlias) else v))
            values = [digest(a, b) for a in values for b in each] if values else each
            # sqlglot loses the sign and the word of others (`-1`, `true`) in the names it makes.
            listed = listed and all(isinstance(v, _NAMES_A_COLUMN) for v in field.expressions)
        pivoted: list[Any] = args.get("columns") or [] if listed else []
        for column in pivoted:  # sqlglot makes the names out of SQL, comments and all
            column.set("this", _COMMENT.sub("", column.this))
        names = [c.name for c in pivoted]
        keys = [self.fold(c) for c in pivoted]
        self.leave()
        return Pivot(
            rel,
            aggregates,
            fields,
            values,
            names,
            keys,
            verbatim(args.get("default_on_null") or None),
            scope.refs,
            scope.subs,
        )

    def pivot_value(self, node: Any) -> bytes:
        """A value of a PIVOT; T-SQL writes it as a name, which is no column's."""
        if self.dialect in _VALUES_ARE_NAMES and isinstance(node, exp.Column):
            refuse_unread(node, _NAME_ALONE)
            return digest(b"value", self.spelled(node.this), self.fold(node.this).encode())
        return self.constant(node)

    def unpivot(self, node: exp.Pivot, rel: Rel, scope: Scope) -> Rel:
        fields = node.args.get("fields") or []
        if len(fields) != 1 or not isinstance(fields[0], exp.In):
            raise Unsupported("UNPIVOT of this form")
        field = fields[0]
        refuse_unread(field, _READ_OF_PIVOT_FIELD)
        value_nodes: list[Any] = []
        for e in node.expressions:
            e = e.this if isinstance(e, exp.Paren) else e
            value_nodes.extend(e.expressions if isinstance(e, exp.Tuple) else [e])
        groups: list[list[int]] = [[] for _ in value_nodes]
        labels: list[bytes] = []
        stored: list[int] = []
        for entry in field.expressions:
            label = None
            if isinstance(entry, exp.PivotAlias):
                alias = entry.args["alias"]
                is_name = isinstance(alias, (exp.Identifier, exp.Literal))
                label = self.spelled(alias) if is_name else verbatim(alias)
                entry = entry.this
            if isinstance(entry, exp.Paren):
                entry = entry.this
            parts = entry.expressions if isinstance(entry, exp.Tuple) else [entry]
            if len(parts) != len(value_nodes):
                raise Unsupported("UNPIVOT with unequal lists of columns")
            for i, part in enumerate(parts):
                if not isinstance(part, exp.Column):
                    raise Unsupported("UNPIVOT of an expression")
                refuse_unread(part, READ_OF_NAME)
                groups[i].append(self.ref(0, 0, self.fold(part.this), part.name))
                if label is None and self.as_stored:
                    stored.append(groups[i][-1])
            if label is None and not self.as_stored:
                label = b"_".join(self.spelled(p.this) for p in parts)
            labels.append(label or b"")
        name_node = field.this
        return Unpivot(
            rel=rel,
            value_names=[_name_of(v) for v in value_nodes],
            value_keys=[self.fold(_identifier_of(v)) for v in value_nodes],
            name_column=_name_of(name_node),
            name_key=self.fold(_identifier_of(name_node)),
            groups=groups,
            labels=repr(labels).encode(),
            include_nulls=bool(node.args.get("include_nulls")),
            values_first=self.dialect in _VALUES_FIRST,
            refs=scope.refs,
            stored=stored,
        )
