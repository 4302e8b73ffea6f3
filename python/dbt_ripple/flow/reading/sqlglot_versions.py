"""What the versions of sqlglot that may be installed read each in its own way.

The rest of `flow` is written for the newest of them. What an older one lacks is made good here: classes
by their names (no node is ever one that is not there), and trees that it makes in another form. Where
it takes a query for another one, the query is not followed: `Misreading` says how that is seen. Which of
this is needed is found out by asking the installed version, once, not by its number; the newest needs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError


class _NoNodeIsThis:
    """In place of a class that is not there."""


Stack: Final[Any] = getattr(exp, "Stack", _NoNodeIsThis)
ArrayContainedBy: Final[Any] = getattr(exp, "ArrayContainedBy", _NoNodeIsThis)
ClusterProperty: Final[Any] = getattr(exp, "ClusterProperty", exp.Cluster)


def _with_one_list_of_keys(tree: Any) -> None:
    """Put ROLLUP, CUBE and GROUPING SETS among the other keys of GROUP BY; `WITH ROLLUP` stays."""
    for group in tree.find_all(exp.Group):
        for name in ("rollup", "cube", "grouping_sets"):
            sets = group.args.get(name) or []
            listed = [
                each for each in sets if isinstance(each, exp.Expression) and each.expressions
            ]
            if listed:
                group.set(name, [each for each in sets if each not in listed] or None)
                group.set("expressions", [*group.expressions, *listed])


def _keys_are_apart() -> bool:
    return bool(
        sqlglot.parse_one("select 1 from t group by rollup(a)").args["group"].args.get("rollup")
    )


_REPAIRS: Final[Sequence[Callable[[Any], None]]] = [
    *([_with_one_list_of_keys] if _keys_are_apart() else []),
]


def in_new_form(tree: Any) -> None:
    """Give a tree, in place, the form in which the newest sqlglot makes it."""
    for repair in _REPAIRS:
        repair(tree)


def names_kept(reader: Any, key: str) -> None:
    """Have a dialect's parser keep, under this key of each call's `meta`, the name it was written with."""
    reader.ORIGINAL_NAME_META_KEY = key
    reader.PRESERVE_ORIGINAL_NAMES = True  # which says the same before sqlglot 30.22


class Misreading(NamedTuple):
    """What an older sqlglot takes for something else.

    Attributes:
        what: the construct, as SQL calls it.
        dialects: those of which it is asked; all where there is none.
        found: how it is seen: by a pattern of the tokens of a text, in upper case and with a space between
            them, or by its tree.
        query: one that has it.
        is_read: whether the tree of this query says what it means.
    """

    what: str
    dialects: Collection[str]
    found: str | Callable[[Any], bool]
    query: str
    is_read: Callable[[Any], bool]


def _belongs_to_the_last(*clauses: str) -> Callable[[Any], bool]:
    """Whether a tree has one of these clauses in the last query of a set operation, without brackets."""

    def found(tree: Any) -> bool:
        lasts = (each.expression for each in tree.find_all(exp.SetOperation))
        return any(isinstance(q, exp.Select) and any(map(q.args.get, clauses)) for q in lasts)

    return found


def _intersects_a_union(tree: Any) -> bool:
    return any(
        isinstance(each.this, (exp.Union, exp.Except)) for each in tree.find_all(exp.Intersect)
    )


def _reads_json_in_arithmetic(tree: Any) -> bool:
    """Whether `->` or `->>` is an operand of arithmetic, or has one that is: `a - b ->> c`."""
    return any(isinstance(each.parent, _ARITHMETIC) for each in tree.find_all(*_OF_JSON))


def _has_an_unnested_relation(tree: Any) -> bool:
    """Whether something is joined as the values of a column that is called like a relation in FROM."""
    return any(
        isinstance(join.this, exp.Unnest)
        and any(isinstance(e, exp.Column) and not e.table for e in join.this.expressions)
        for join in tree.find_all(exp.Join)
    )


def _has_column(name: str) -> Callable[[Any], bool]:
    return lambda tree: any(c.name.lower() == name for c in tree.find_all(exp.Column))


def _no_column(name: str) -> Callable[[Any], bool]:
    return lambda tree: not _has_column(name)(tree)


def _first(tree: Any) -> Any:
    return tree.selects[0]


_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_OF_JSON: Final = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)
_MYSQL: Final = ("doris", "mysql", "singlestore", "starrocks")
_PIPED: Final = frozenset({"bigquery", "databricks", "spark"})
_POSTGRES: Final = ("materialize", "postgres", "risingwave")
_SPARK: Final = frozenset({"databricks", "hive", "spark", "spark2"})
_TSQL: Final = frozenset({"fabric", "tsql"})
_TRINO: Final = ("athena", "dune", "presto", "trino")
_HINTS: Final = (
    "NOLOCK|READUNCOMMITTED|UPDLOCK|REPEATABLEREAD|SERIALIZABLE|READCOMMITTED|TABLOCKX?|PAGLOCK"
    "|ROWLOCK|NOWAIT|READPAST|XLOCK|SNAPSHOT|NOEXPAND"
)
MISREADINGS: Final = (
    Misreading(
        "INTERSECT behind UNION or EXCEPT, without brackets",
        (),
        _intersects_a_union,
        "select 1 union select 2 intersect select 3",
        lambda tree: hasattr(Dialect, "INTERSECT_BINDS_TIGHTER_THAN_UNION_AND_EXCEPT"),
    ),
    Misreading(
        "LIMIT ALL",
        (*_POSTGRES, *_TRINO, "databricks", "duckdb", "redshift", "spark"),
        r"\bLIMIT ALL\b",
        "select a from t limit all",
        _no_column("all"),
    ),
    Misreading(
        "a column that is called like a constant",
        (),
        r"\. (?:NULL|TRUE|FALSE)\b",
        "select t.null, t.true from t",
        lambda tree: [type(c.this) for c in tree.selects] == [exp.Identifier] * 2,
    ),
    Misreading(
        "-> behind COLLATE",
        (*_POSTGRES, "duckdb", "redshift", "sqlite"),
        r"\bCOLLATE \S+ (?:->|#>)",
        "select a collate c -> b from t",
        lambda tree: not isinstance(_first(tree), exp.Collate),
    ),
    Misreading(
        "-> beside arithmetic, without brackets",
        (*_POSTGRES, "redshift"),
        _reads_json_in_arithmetic,
        "select a - b -> c",
        lambda tree: not isinstance(_first(tree), exp.Sub),
    ),
    Misreading(
        "-> beside arithmetic, without brackets",
        ("sqlite",),
        _reads_json_in_arithmetic,
        "select a -> b - c -> d",
        lambda tree: isinstance(_first(tree).this, exp.Paren),
    ),
    Misreading(
        "AGGREGATE in a pipe, with GROUP BY",
        _PIPED,
        r"\|> AGGREGATE\b.*\bGROUP\b",
        "from t |> aggregate sum(a) as n group by k",
        lambda tree: (
            [c.alias_or_name for each in tree.find_all(exp.Group) for c in each.parent.selects][:1]
            != ["n"]
        ),
    ),
    Misreading(
        "CLUSTER BY, DISTRIBUTE BY or SORT BY behind a set operation",
        _SPARK,
        _belongs_to_the_last("cluster", "distribute", "sort"),
        "select a from t union select a from u sort by a",
        lambda tree: bool(tree.args.get("sort")),
    ),
    Misreading(
        "ORDER BY or OPTION behind a set operation",
        _TSQL,
        _belongs_to_the_last("order", "options", "for_"),
        "select a from t union select a from u order by a",
        lambda tree: bool(tree.args.get("order")),
    ),
    Misreading(
        "SETTINGS or FORMAT behind a set operation",
        ("clickhouse",),
        _belongs_to_the_last("settings", "format"),
        "select a from t union all select a from u settings s = 1",
        lambda tree: bool(tree.args.get("settings")),
    ),
    Misreading(
        "a table's hint without WITH",
        _TSQL,
        rf"(?<!WITH )\( (?:{_HINTS})\b|\bSTART WITH \(",
        "select a from t as s(nolock)",
        lambda tree: not next(tree.find_all(exp.Table)).alias_column_names,
    ),
    Misreading(
        "an alias for a value of PIVOT",
        ("snowflake",),
        lambda tree: any(
            pivot.find(exp.PivotAlias) and not pivot.unpivot for pivot in tree.find_all(exp.Pivot)
        ),
        "select * from t pivot(sum(v) for c in ('a' as x))",
        lambda tree: next(tree.find_all(exp.Pivot)).args["columns"][0].name == "x",
    ),
    Misreading(
        "a join with a relation that is called like one before it",
        ("redshift",),
        _has_an_unnested_relation,
        'select * from t1 cross join "t1" as "c"',
        lambda tree: not list(tree.find_all(exp.Unnest)),
    ),
    Misreading(
        "a column as the key of a MAP",
        ("duckdb",),
        r"\bMAP \{(?:[^{}]*,)? [^\W\d][^,{}]* :|\bMAP \{(?:[^{}]*,)? \"",
        "select map {b: 1} from t",
        _has_column("b"),
    ),
    Misreading(
        "LEFT or FULL before a set operation",
        ("bigquery",),
        r"\b(?:LEFT|FULL|RIGHT|INNER)(?: OUTER)? (?:UNION|EXCEPT|INTERSECT)\b",
        "select (1) left union all by name select 2 as a",
        lambda tree: bool(tree.args.get("side")),
    ),
    Misreading(
        "a pipe beside WITH",
        _PIPED,
        r"\bWITH\b.*\|>",
        "with t as (from u |> where a) from t |> where b |> select c",
        lambda tree: {"t", "u"} <= {table.name for table in tree.find_all(exp.Table)},
    ),
    Misreading(
        "PASTE JOIN",
        ("clickhouse",),
        r"\bPASTE JOIN\b",
        "select * from t paste join u",
        lambda tree: not next(tree.find_all(exp.Table)).alias,
    ),
    Misreading(
        "a project of a domain",
        ("bigquery",),
        r"`[^`]*\.[^`]*:[^`]*`",
        "select * from `domain.com:p.d.t`",
        lambda tree: len(next(tree.find_all(exp.Table)).parts) == 3,
    ),
    Misreading(
        "NOT DETERMINISTIC",
        ("bigquery",),
        r"\bNOT DETERMINISTIC\b",
        "select not deterministic from t",
        lambda tree: isinstance(_first(tree), exp.Not),
    ),
    Misreading(
        "a string with Unicode escapes",
        _POSTGRES,
        r"\bU ?& ?'",
        "select u&'a'",
        _no_column("u"),
    ),
    Misreading(
        "TIMESTAMPADD",
        _MYSQL,
        r"\bTIMESTAMPADD \(",
        "select timestampadd(minute, 1, a)",
        _no_column("minute"),
    ),
    Misreading(
        "JSON_VALUE ... RETURNING",
        _MYSQL,
        r"\bJSON_VALUE \(.*\bRETURNING\b",
        "select json_value(a, '$.a' returning char)",
        _no_column("char"),
    ),
    Misreading(
        "a name that is a word of joins",
        ("mysql",),
        "`STRAIGHT_JOIN`",
        "select `straight_join` from t",
        _has_column("straight_join"),
    ),
    Misreading(
        "file()",
        ("clickhouse",),
        r"\bFILE \(",
        "select * from file('a', b)",
        lambda tree: not isinstance(next(tree.find_all(exp.Table)).this, exp.Identifier),
    ),
)
"""Found by comparing what 30.8 and 30.30 make of sqlglot's and sqlfluff's own queries, and of their edits."""


@cache
def _misreadings(dialect: str) -> Sequence[Misreading]:
    """Those of the installed version."""
    asked = (each for each in MISREADINGS if not each.dialects or dialect in each.dialects)
    return [each for each in asked if not _is_read(each, dialect)]


def _is_read(of: Misreading, dialect: str) -> bool:
    try:
        return bool(of.is_read(sqlglot.parse_one(of.query, dialect=dialect if of.dialects else "")))
    except SqlglotError:  # neither is what else has it
        return True


_NOT_AS_A_NAME: Final = re.compile(
    r"\bAS (?!MATERIALIZED\b)[^ ()]+ \( [^()]*\bNOT\b(?! NULL)"
    r"|[^ ()]+ \( [^()]*\bNOT\b(?! NULL)[^()]*\) AS \("
)
"""NOT among the names that AS, or WITH, gives to columns."""
_MAY_NOT_END: Final = not hasattr(Dialect, "ORIGINAL_NAME_META_KEY")


def may_not_end(sql: str, tokens: Sequence[Any]) -> bool:
    """Whether the installed version could parse a text for ever; no engine takes such a text.

    Args:
        sql: the text.
        tokens: of the text.
    """
    return _MAY_NOT_END and _NOT_AS_A_NAME.search(_words(sql, tokens)) is not None


def _words(sql: str, tokens: Sequence[Any]) -> str:
    return " ".join(sql[token.start : token.end + 1].upper() for token in tokens)


def misread(sql: str, tokens: Sequence[Any], trees: Sequence[Any], dialect: str) -> str | None:
    """What of a text the installed version takes for something else; None where there is nothing.

    Args:
        sql: the text.
        tokens: of the text.
        trees: of its statements.
        dialect: it is written in.
    """
    words = ""
    for each in _misreadings(dialect):
        if callable(each.found):
            if any(map(each.found, trees)):
                return each.what
            continue
        words = words or _words(sql, tokens)
        if re.search(each.found, words, re.DOTALL):
            return each.what
    return None
