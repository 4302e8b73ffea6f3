"""DuckDB's PIVOT and UNPIVOT, as statements and with GROUP BY, written as the clause they stand for.

    pivot t on w in ('ash', 'elm') using max(v) group by g

means the same as

    select * from (select g, v, w from t) pivot (max(v) for w in ('ash', 'elm'))

because PIVOT groups by the columns that it does not name. All forms were compared with DuckDB
(`tests/flow/test_pivot_statements.py`). Source: DuckDB's documentation of PIVOT and UNPIVOT.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from sqlglot import exp

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
