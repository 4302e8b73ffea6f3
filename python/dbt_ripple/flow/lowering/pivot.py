"""PIVOT and UNPIVOT.

DuckDB's, as statements and with GROUP BY, are written as the clause they stand for:

    pivot t on w in ('ash', 'elm') using max(v) group by g

means the same as

    select * from (select g, v, w from t) pivot (max(v) for w in ('ash', 'elm'))

because PIVOT groups by the columns that it does not name. All forms were compared with DuckDB
(`tests/flow/test_pivot_statements.py`). Source: DuckDB's documentation of PIVOT and UNPIVOT.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import AGGREGATION, CONDITIONAL, LoweredExpr, Pivot, Rel, Unpivot
from dbt_ripple.flow.lowering.clause_helpers import READ_OF_NAME, ClauseHelpers, refuse_unread
from dbt_ripple.flow.lowering.parse_tree import argument_names, verbatim
from dbt_ripple.flow.lowering.scope import Scope
from dbt_ripple.flow.reading.refusals import Unsupported

_READ_OF_STATEMENT: Final = frozenset(
    {"this", "expressions", "using", "group", "into", "with_", "unpivot"}
)
_HIDE_NAMES: Final = (exp.Query, exp.Lambda, exp.Kwarg, exp.PropertyEQ, exp.Columns, exp.Dot)
"""What may contain names that are no columns of the pivoted relation, or columns without a name."""


def as_select(statement: exp.Pivot) -> exp.Select:
    """The SELECT that a PIVOT or UNPIVOT statement stands for, without its WITH.

    Raises:
        Unsupported: it has a clause that is not read, or the names of its columns are data.
    """
    args = statement.copy().args
    more = next((k for k, v in args.items() if v and k not in _READ_OF_STATEMENT), None)
    if more:
        raise Unsupported(f"PIVOT statement with {more.rstrip('_')}")
    clause = _unpivot(args) if args.get("unpivot") else _pivot(args)
    source = exp.Subquery(this=_selected(exp.Star(), args["this"]), pivots=[clause])
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=without_group(source)))


def without_group(source: exp.Expression) -> exp.Expression:
    """A relation in FROM whose PIVOT has GROUP BY, as one whose PIVOT has not; others as they are.

    Raises:
        Unsupported: which columns the PIVOT reads cannot be told from its text.
    """
    pivots = source.args.get("pivots") or []
    if not any(pivot.args.get("group") for pivot in pivots):
        return source
    if len(pivots) > 1:
        raise Unsupported("several PIVOTs with GROUP BY")
    source = source.copy()
    (pivot,) = source.args["pivots"]
    group = pivot.args["group"]
    if any(value for key, value in group.args.items() if key != "expressions"):
        raise Unsupported("PIVOT with such a GROUP BY")
    columns = _columns(group.expressions)
    read = _columns([*pivot.expressions, *(pivot.args.get("fields") or [])])
    if not columns.keys().isdisjoint(read):
        raise Unsupported("PIVOT that groups by a column it reads")
    generated = {column.name.lower() for column in pivot.args.get("columns") or []}
    if len(columns) < len(group.expressions) or not generated.isdisjoint(columns):
        raise Unsupported("PIVOT with two columns of one name")
    pivot.set("group", None)
    source.set("pivots", None)
    narrowed = _selected(*columns.values(), *read.values(), source)
    return exp.Subquery(this=narrowed, pivots=[pivot])


def _selected(*items: Any) -> exp.Select:
    """SELECT all but the last FROM the last."""
    *columns, source = items
    return exp.Select(expressions=columns, from_=exp.From(this=source))


def _columns(nodes: list[Any]) -> dict[str, exp.Column]:
    """The columns in these expressions by name, each a copy, in the order of the text."""
    columns: dict[str, exp.Column] = {}
    for node in nodes:
        for inner in node.walk():
            if isinstance(inner, _HIDE_NAMES):
                raise Unsupported(f"PIVOT of {inner.key.upper()}")
            if isinstance(inner, exp.Star) and not isinstance(inner.parent, exp.Count):
                raise Unsupported("PIVOT of *")
            if isinstance(inner, exp.Column):
                if inner.table:
                    raise Unsupported("PIVOT of a column with its table's name")
                columns.setdefault(inner.name.lower(), inner.copy())
    return columns


def _pivot(args: dict[str, Any]) -> exp.Pivot:
    using = args.get("using") or [exp.Count(this=exp.Star(), big_int=True)]
    for field in args["expressions"]:
        if not isinstance(field, exp.In) or not field.expressions:
            raise Unsupported("PIVOT without a list of values")
    columns = [
        exp.Identifier(this=name, quoted=True) for name in _names(args["expressions"], using)
    ]
    return exp.Pivot(
        expressions=using, fields=args["expressions"], columns=columns, group=args.get("group")
    )


def _names(fields: list[exp.In], using: list[exp.Expression]) -> list[str]:
    """What DuckDB calls the columns: a value of each list, then the aggregate's alias, if it has one."""
    if len(using) > 1 and not all(isinstance(aggregate, exp.Alias) for aggregate in using):
        raise Unsupported("PIVOT of several aggregates without aliases")
    values = [[_value(value) for value in field.expressions] for field in fields]
    names = [
        "_".join([*row, *([aggregate.alias] if isinstance(aggregate, exp.Alias) else [])])
        for row in product(*values)
        for aggregate in using
    ]
    if len({name.lower() for name in names}) < len(names):
        raise Unsupported("PIVOT with two columns of one name")
    return names


def _value(node: exp.Expression) -> str:
    """The name of a listed value: a string's text, a whole number's digits."""
    text = str(node.this)
    if isinstance(node, exp.Literal) and (
        node.is_string or (node.is_int and text == str(int(text)))
    ):
        return text
    raise Unsupported("PIVOT over values whose columns have names that the text does not show")


def _unpivot(args: dict[str, Any]) -> exp.Pivot:
    into = args.get("into")
    names = (
        [into.this, *into.expressions]
        if into is not None
        else [exp.Column(this=exp.to_identifier(name)) for name in ("name", "value")]
    )
    entries = [
        exp.PivotAlias(this=entry.this, alias=entry.args["alias"])
        if isinstance(entry, exp.Alias)
        else entry
        for entry in args["expressions"]
    ]
    return exp.Pivot(
        unpivot=True,
        expressions=names[1:],
        fields=[exp.In(this=names[0], expressions=entries)],
    )


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
