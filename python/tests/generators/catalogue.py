"""An engine's own catalogue of functions, as calls that it is known to execute.

Every overload is tried with arguments of its parameters' types; what the engine answers becomes a
`Call` from which queries are written. A function that no arguments were found for is listed.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb

LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "2", "3", "-1", "7", "null"),
    "num": ("0.5", "1.25", "2.0", "cast(-0.0 as double)", "1e1", "-2.5"),
    "str": ("'a'", "'A'", "'1'", "'01'", "''", "'b c'", "'ab'", "null", "'x'"),
    "bool": ("true", "false", "null"),
    "date": ("date '2024-02-29'", "date '2023-12-31'", "date '2024-01-01'"),
    "ts": ("timestamp '2024-02-29 12:30:00'", "timestamp '2023-12-31 23:59:59.5'"),
    "list": ("[1, 2, null]", "[2, 1]", "[]::integer[]", "[3, 1, 1]"),
    "slist": ("['a', 'B', null]", "['1', '01']", "['b']"),
    "struct": ("{'x': 1, 'y': 'a'}", "{'x': null, 'y': 'B'}", "{'x': 2, 'y': '01'}"),
    "map": ("map {'a': 1, 'b': 2}", "map {'b': 2}", "map {'a': null}"),
    "json": (
        """'{"a": 1, "A": [1, "1"]}'::json""",
        """'[1, {"a": "01"}]'::json""",
        """'{"b": null}'::json""",
    ),
    "interval": ("interval 1 day", "interval '2 months'", "interval 90 minute"),
}
"""What a class of types is written as; `int` and the like stand for all types of the kind."""

CLASSES: Final[dict[str, str]] = {
    **dict.fromkeys(
        "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT".split(),
        "int",
    ),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "num"),
    "VARCHAR": "str",
    "BOOLEAN": "bool",
    "DATE": "date",
    "TIMESTAMP": "ts",
    "INTEGER[]": "list",
    "BIGINT[]": "list",
    "VARCHAR[]": "slist",
    "JSON": "json",
    "INTERVAL": "interval",
    "MAP(VARCHAR, INTEGER)": "map",
    "STRUCT(x INTEGER, y VARCHAR)": "struct",
}

RARE: Final[dict[str, tuple[str, ...]]] = {
    "BLOB": ("'ab'::blob", "encode({str})"),
    "TIMESTAMP WITH TIME ZONE": ("{ts}::timestamptz",),
    "TIMESTAMPTZ_NS": ("{ts}::timestamptz::timestamptz_ns",),
    "TIMESTAMP_NS": ("{ts}::timestamp_ns",),
    "TIMESTAMP_MS": ("{ts}::timestamp_ms",),
    "TIMESTAMP_S": ("{ts}::timestamp_s",),
    "TIME": ("{ts}::time", "time '10:20:30'"),
    "TIME WITH TIME ZONE": ("time '10:20:30'::timetz",),
    "TIME_NS": ("time '10:20:30'::time_ns",),
    "BIT": ("'0101'::bit", "{int}::integer::bit"),
    "UUID": ("'5dd8fbd8-4a7c-4fd5-8bd1-2f8d6ff11a11'::uuid",),
    "VARIANT": ("{int}::variant", "{str}::variant"),
    "GEOMETRY": ("'POINT (1 2)'::geometry",),
    "BIGNUM": ("{int}::bignum",),
    "FLOAT[3]": ("[1, 2, {int}]::float[3]",),
    "DOUBLE[3]": ("[1, 2, {int}]::double[3]",),
    "FLOAT[ANY]": ("[1, 2, {int}]::float[3]",),
    "DOUBLE[ANY]": ("[1, 2, {int}]::double[3]",),
    "DOUBLE[]": ("[1.5, {int}]::double[]", "[0.25, 0.75]"),
    "FLOAT[]": ("[1.5, {int}]::float[]", "[0.25, 0.75]::float[]"),
    "BOOLEAN[]": ("[{bool}, true]",),
    "STRUCT": ("{struct}",),
    "TUPLE": ("row({int}, {str})", "({int}, {str})"),
    "UNION": ("union_value(k := {int})",),
    "T[][]": ("[{list}, {list}]",),
    "TUPLE(K, V)[]": ("[({str}, {int})]", "[{'k': {str}, 'v': {int}}]"),
    "MAP(VARCHAR, VARCHAR)": ("map {'a': {str}}",),
    'STRUCT("year" BIGINT, "month" BIGINT, "day" BIGINT)': (
        "{'year': 2024, 'month': 1, 'day': 2}",
    ),
}

MORE: Final = (
    ("scalar", "list_aggregate({list}, 'sum')"), ("scalar", "list_aggregate({list}, 'string_agg', ',')"),
    ("scalar", "list_aggr({list}, 'max')"), ("scalar", "array_aggregate({list}, 'first')"),
    ("scalar", "array_aggr({list}, 'median')"), ("scalar", "aggregate({list}, 'min')"),
    ("scalar", "cardinality({map})"), ("scalar", "map_concat({map}, {map})"),
    ("scalar", "map_contains_entry({map}, {str}, {int})"), ("scalar", "split_part({str}, {str}, 1)"),
    ("scalar", "split_part({str}, 'b', 2)"), ("scalar", "struct_insert({struct}, z := {int})"),
    ("scalar", "struct_update({struct}, x := {int})"), ("scalar", "struct_extract_at({struct}, 1)"),
    ("scalar", "struct_extract_at(row({int}, {str}), 2)"), ("scalar", "union_value(a := {int})"),
    ("scalar", "union_extract(union_value(a := {int}), 'a')"), ("scalar", "position({str} in {str})"),
    ("scalar", "from_json({json}, '{\"a\": \"VARCHAR\"}')"),
    ("scalar", "from_json_strict({json}, '\"JSON\"')"),
    ("scalar", "json_transform({json}, '{\"A\": \"JSON\"}')"),
    ("scalar", "json_transform_strict({json}, '\"JSON\"')"), ("scalar", "to_base({int}, 2)"),
    ("scalar", "to_base(abs({int}), 16, 4)"), ("scalar", "list_bool_and([{bool}, {bool}])"),
    ("scalar", "list_bool_or([{bool}, {bool}])"), ("aggregate", "approx_top_k({int}, 2)"),
    ("aggregate", "lttb({num}, {num}, 2)"), ("scalar", "add({int}, {int})"),
    ("aggregate", "histogram({int}, [1, 2, 3])"), ("aggregate", "sum({int}) / count({str})"),
    ("scalar", "grouping({int})"),
)  # fmt: skip
"""Calls in forms of their own, which their parameters' types do not tell."""

WORDS: Final = (
    "'day'", "'a'", "'%Y-%m-%d'", "'$.a'", "'x'", "'%d'", "','", "'UTC'", "'month'", "'[a-b]'", "'0'",
    "'sum'", "'mean'", "'left'", "'NFC'", "'1 day'", "'2024-01-01'", "'{}'", "'integer'", "'sum'",
    "'2024-01-01 00:00:00'", "'key'", "'http://a.b/c?d=1'", "'ab'", "'YQ=='", "'FF'",
)  # fmt: skip
"""Strings that mean something to one function or another."""

LAMBDAS: Final = ("lambda q: {q}", "lambda q, r: {q}")

LEFT_OUT: Final = re.compile(
    r"""^(
      pg_.*|has_.*_privilege|.*current_.*|today|user|session_user|inet_.*|version|getvariable
    | now|get_current_.*|transaction_timestamp|txid_current|random|uuid.*|gen_random_uuid|setseed
    | nextval|currval|ago|sleep.*|write_log|parse_duckdb_log_message|stats|vector_type|query_.*
    | in_search_path|current_query|duckdb_.*|icu_.*|.*_secret.*|finalize|combine|get_block_size
    | add_parquet_key|read_.*|getenv|is_histogram_other_bin|error|create_sort_key|json_serialize_.*
    | json_deserialize_.*|json_execute_.*|test_.*|approx_quantile|reservoir_quantile|which_.*
    | __internal.*|_.*|col_description|obj_description|shobj_description|to_base|formatReadable.*
    | age|list_sort_key|unpivot_list|constant_or_null|invoke|replace_type|remap_struct
    | variant_normalize|map_to_pg_oid|format_pg_type|format_type|cast_to_type|enum_.*|can_cast_.*
    | array_to_string_comma_default
    )$""",
    re.X,
)
"""Functions whose answer is the time's, the session's, the storage's or chance's, not the query's;
approximations that depend on the order rows come in; and what only the engine itself may call."""
KEPT_ANYWAY: Final = frozenset({"to_base", "formatReadableSize", "formatReadableDecimalSize"})

SYMBOL: Final = re.compile(r"^[^\w\s]+$")


@dataclass(frozen=True)
class Call:
    """One way to call a function: a class of types for each argument, or ``=`` and its text."""

    name: str
    kind: str
    arguments: tuple[str, ...]
    result: str
    whole: bool = False
    """Whether its one argument is the text of all of it."""

    def text(self, arguments: list[str]) -> str:
        if self.whole:
            return arguments[0]
        if SYMBOL.match(self.name):
            if len(arguments) == 2:
                return f"({arguments[0]} {self.name} {arguments[1]})"
            if self.name == "!":
                return f"({arguments[0]} {self.name})"
            return f"({self.name} {arguments[0]})"
        name = self.name if re.match(r"^[a-z_]\w*$", self.name) else f'"{self.name}"'
        return f"{name}({', '.join(arguments)})"


@dataclass
class Catalogue:
    """The calls by what they give, and the functions nobody found arguments for."""

    calls: dict[tuple[str, str], dict[str, list[Call]]] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=dict)

    def add(self, call: Call) -> None:
        """Add a call, to be found by its kind and what it gives."""
        of = self.calls.setdefault((call.kind, call.result), {})
        of.setdefault(call.name, []).append(call)
        self.names.setdefault(call.kind, set()).add(call.name)

    def of(self, kind: str, result: str) -> list[list[Call]]:
        """The calls of each function of a kind that gives a class of types."""
        return list(self.calls.get((kind, result), {}).values())


def class_of(type_name: str) -> str:
    base = type_name.split("(")[0] if type_name.startswith("DECIMAL") else type_name
    return CLASSES.get(base, "other")


SPARK_CLASSES: Final = {
    **dict.fromkeys("tinyint smallint int bigint".split(), "int"),
    **dict.fromkeys("double float".split(), "num"),
    "string": "str", "boolean": "bool", "date": "date", "timestamp": "ts", "array<int>": "list",
    "array<bigint>": "list", "array<string>": "slist", "map<string,int>": "map",
    "struct<x:int,y:string>": "struct",
}  # fmt: skip


def class_of_spark(type_name: str) -> str:
    if type_name.startswith("decimal"):
        return "num"
    return SPARK_CLASSES.get(type_name, "other")


def duckdb_catalogue(connection: duckdb.DuckDBPyConnection, one_in: int = 1) -> Catalogue:
    """The calls that DuckDB executes over the table `every`; of one function in so many."""
    catalogue = Catalogue()
    rows = connection.execute(
        """
        select distinct function_name, function_type, parameter_types, varargs, stability
        from duckdb_functions()
        where function_type in ('scalar', 'aggregate', 'macro', 'window')
        order by all
        """
    ).fetchall()
    missing: dict[tuple[str, str], None] = {}
    tried: dict[tuple[str, str, tuple[str, ...]], bool] = {}
    for name, kind, parameters, varargs, stability in rows:
        if kind != "window" and name != "max" and zlib.crc32(name.encode()) % one_in:
            continue
        if stability in ("VOLATILE", "CONSISTENT_WITHIN_QUERY"):
            continue
        if LEFT_OUT.match(name) and name not in KEPT_ANYWAY:
            continue
        kind = "scalar" if kind == "macro" else kind
        made = False
        lists = [parameters or []]
        if varargs:
            lists = [(parameters or []) + [varargs] * n for n in (1, 2, 3)]
        for wanted in lists:
            for arguments in variants(wanted):
                tried_call = tried.get((name, kind, arguments))
                if tried_call is not None:
                    made = made or tried_call
                    if tried_call:
                        break
                    continue
                call = attempt(connection, name, kind, arguments)
                tried[name, kind, arguments] = call is not None
                if call is not None:
                    catalogue.add(call)
                    made = True
                    break
        missing.setdefault((name, kind))
        if made:
            missing[name, kind] = True  # type: ignore[assignment]
    for kind, text in MORE:
        call = attempt(connection, text, kind, (f"={text}",))
        if call is not None:
            catalogue.add(call)
            missing[call.name, kind] = True  # type: ignore[assignment]
    catalogue.unreached = sorted(f"{n} ({k})" for (n, k), done in missing.items() if not done)
    return catalogue


def variants(parameters: list[str | None]) -> list[tuple[str, ...]]:
    """Arguments to try for parameters, the likeliest first."""
    each: list[list[str]] = []
    for parameter in parameters:
        if parameter is None or parameter in ("ANY", "T", "K", "V"):
            each.append(["int", "str", "list", "struct", "json", "date", "map", "num", "bool"])
        elif parameter in ("ANY[]", "T[]", "K[]", "V[]"):
            each.append(["list", "slist"])
        elif parameter == "LAMBDA":
            each.append([f"={text}" for text in LAMBDAS])
        elif parameter.startswith("MAP(K"):
            each.append(["map"])
        elif parameter == "STRUCT":
            each.append(["struct"])
        elif parameter in RARE:
            each.append([f"={text}" for text in RARE[parameter]])
        elif parameter == "VARCHAR":
            each.append(["str", *(f"={w}" for w in WORDS)])
        else:
            each.append([class_of(parameter)] if class_of(parameter) != "other" else ["int"])
    shapes = [tuple(choices[0] for choices in each)]
    for i, choices in enumerate(each):
        for choice in choices[1:]:
            shapes.append(tuple(choice if j == i else c[0] for j, c in enumerate(each)))
    # Generic parameters mostly have to be of one type.
    generic = [i for i, p in enumerate(parameters) if p in (None, "ANY", "T", "K", "V")]
    for one in ("str", "num", "date", "ts", "list", "struct", "json", "interval"):
        shapes.append(tuple(one if i in generic else c[0] for i, c in enumerate(each)))
    if len(parameters) == 2:
        shapes += [("map", "str"), ("str", "json"), ("list", "=[1, 2]"), ("list", "='sum'")]
    return list(dict.fromkeys(shapes))[:70]


PLACE: Final = re.compile(r"\{(q|int|num|str|bool|date|ts|list|slist|struct|map|json|interval)\}")
"""Where a text leaves place for an expression of a class of types."""

COLUMN: Final = {
    "int": "k", "num": "f", "str": "s", "bool": "p", "date": "d", "ts": "ts", "list": "l", "slist": "z",
    "struct": "st", "map": "m", "json": "j", "interval": "iv",
}  # fmt: skip


def attempt(
    connection: duckdb.DuckDBPyConnection, name: str, kind: str, arguments: tuple[str, ...]
) -> Call | None:
    """A call with these arguments, columns or else literals, if it executes."""
    for literal in (False, True):
        texts = []
        for a in arguments:
            if a.startswith("="):
                texts.append(PLACE.sub(lambda m: COLUMN.get(m[1], "q"), a[1:]))
            else:
                texts.append(LITERALS[a][0] if literal else COLUMN[a])
        made = Call(name, kind, arguments, "")
        text = texts[0] if "(" in name else made.text(texts)
        over = " over (order by k)" if kind == "window" else ""
        try:
            row: Any = connection.execute(
                f"select typeof({text}{over}) as t, {text}{over} as v from every limit 3"
            ).fetchone()
        except Exception:
            continue
        if row is None:
            continue
        argument_types = tuple(
            f"={LITERALS[a][0]}" if literal and not a.startswith("=") else a for a in arguments
        )
        return Call(name.split("(")[0], kind, argument_types, class_of(row[0]), "(" in name)
    return None
