"""Write the lists of functions by kind, each from its engine's own catalogue.

    python python/tools/functions.py duckdb spark sqlite clickhouse postgres

An engine has to run where this does: ``duckdb`` and ``spark`` are in the development install, ``clickhouse`` needs the
package ``chdb``, ``postgres`` a server that ``psql`` reaches by its environment (``PGHOST``, ...),
in a database that may be filled with extensions. The other lists are written by hand, from the
documentation each of them names.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

LISTS: Final = Path(__file__).parent.parent / "dbt_ripple" / "flow" / "functions"
NAME: Final = re.compile(r"[a-z_][a-z0-9_.]*")
_CALL: Final = re.compile(r"\b([a-z_][a-z0-9_]*)\"?\s*\(", re.IGNORECASE)
_QUERY: Final = re.compile(r"\(\s*select\b", re.IGNORECASE)

Kinds = dict[str, set[str]]

DUCKDB_GRAMMAR: Final = """
    alias array case cast coalesce collation columns construct_array exists extract if ifnull iff interval map nullif overlay position row struct substring trim try
    try_cast unpack
""".split()
"""Scalar words of DuckDB's grammar that look like calls and are in no catalogue."""

GROUPING: Final = ["grouping", "grouping_id"]
"""They stand where there are groups."""

SPARK_GRAMMAR: Final = """
    cast extract exists named_struct overlay position substring timestampadd timestampdiff trim
    try_cast
""".split()

POSTGRES_LATER: Final = {
    "aggregate": "any_value json_arrayagg json_objectagg",
    "scalar": """
        array_reverse array_sample array_shuffle array_sort casefold crc32 crc32c date_add
        date_subtract erf erfc gamma lgamma pg_basetype pg_input_is_valid random_normal
        to_bin to_oct unicode_assigned uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7
        xmltext json_scalar json_serialize
    """,
    "table": "json_table xmltable pg_input_error_info",
    "volatile": "array_sample array_shuffle random_normal uuidv4 uuidv7",
}
"""What versions after 15 have besides, by their documentation (releases 16 to 18)."""

POSTGRES_GRAMMAR: Final = """
    array cast coalesce exists extract greatest interval json json_array json_exists
    json_object json_query json_scalar json_serialize json_value least normalize nullif overlay
    position row substring treat trim xmlconcat xmlelement xmlexists xmlforest xmlparse xmlpi
    xmlroot xmlserialize merge_action current_catalog current_date current_role current_schema
    current_time current_timestamp current_user localtime localtimestamp session_user user
""".split()

SQLITE_GRAMMAR: Final = ["cast", "exists", "raise"]

CLICKHOUSE_GRAMMAR: Final = """
    case cast coalesce columns date_add date_diff date_sub datediff exists extract if interval
    ltrim not overlay position rtrim substring timestamp_add timestamp_diff timestamp_sub trim
""".split()


def duckdb() -> tuple[str, Kinds]:
    """``duckdb_functions()``; a macro does what the functions it is made of do."""
    import duckdb as engine

    connection = engine.connect()
    rows = connection.execute(
        "select distinct lower(function_name), function_type, macro_definition, stability "
        "from duckdb_functions()"
    ).fetchall()
    kinds: Kinds = {}
    macros: dict[str, str] = {}
    names = {"scalar": "scalar", "aggregate": "aggregate", "window": "window", "table": "table"}
    names |= {"table_macro": "table"}
    for name, kind, definition, stability in rows:
        if kind in names:
            kinds.setdefault(names[kind], set()).add(name)
        elif kind == "macro":
            macros[name] = f"{macros.get(name, '')} {definition}"
        if stability == "VOLATILE":
            kinds.setdefault("volatile", set()).add(name)
    kinds["table"] -= {"unnest"}  # the only one that may stand in a select list
    kinds["generator"] = {"unnest", "unlist"}
    while macros:
        ready = [m for m, text in macros.items() if not macros.keys() & (_called(text) - {m})]
        for name in ready or list(macros):
            text = macros.pop(name)
            called = _called(text) if not _QUERY.search(text) else set()
            for kind in ("generator", "aggregate", "scalar"):
                if kind == "scalar" or called & kinds[kind]:
                    kinds[kind].add(name)
                    break
            if called & kinds["volatile"]:
                kinds["volatile"].add(name)
    kinds["scalar"].update(DUCKDB_GRAMMAR)
    kinds["aggregate"].update(GROUPING)
    return f"DuckDB {engine.__version__}: duckdb_functions()", kinds


def _called(definition: str) -> set[str]:
    bare = re.sub(r"'[^']*'", "''", definition)
    return {name.lower() for name in _CALL.findall(bare)}


def spark() -> tuple[str, Kinds]:
    """The session's registries of functions and of table functions, by group."""
    from dbt_ripple.spark.session import get_session, local_environment

    with tempfile.TemporaryDirectory() as folder:
        local_environment(Path(folder))
        session = get_session()
        try:
            return f"Spark {session.version}: FunctionRegistry", spark_kinds(session)
        finally:
            session.stop()


def spark_kinds(session: object) -> Kinds:
    """The functions of a Spark session by kind."""
    state = session._jsparkSession.sessionState()  # type: ignore[attr-defined]
    loader = state.getClass().getClassLoader()
    package = "org.apache.spark.sql.catalyst.expressions"
    # The groups are those of the documentation: some aggregates stand among functions on JSON.
    parents = [
        (kind, loader.loadClass(f"{package}.{name}"))
        for kind, name in (
            ("window", "WindowFunction"),
            ("aggregate", "aggregate.AggregateFunction"),
            ("aggregate", "RuntimeReplaceableAggregate"),
            ("generator", "Generator"),
        )
    ]
    groups = {"agg_funcs": "aggregate", "window_funcs": "window", "generator_funcs": "generator"}
    kinds: Kinds = {}
    for registry, default in (
        (state.functionRegistry(), "scalar"),
        (state.tableFunctionRegistry(), "table"),
    ):
        identifiers = registry.listFunction().iterator()
        while identifiers.hasNext():
            identifier = identifiers.next()
            info = registry.lookupFunction(identifier).get()
            kind = default
            if default == "scalar":
                made = loader.loadClass(info.getClassName())
                of_class = [kind for kind, parent in parents if parent.isAssignableFrom(made)]
                kind = next(iter(of_class), groups.get(info.getGroup(), default))
            kinds.setdefault(kind, set()).add(identifier.funcName().lower())
    kinds["table"] -= kinds["generator"]
    # A sliding window puts a row into several windows, and one without a time into none.
    kinds["generator"] |= {"window", "session_window"}
    kinds["scalar"] -= kinds["generator"]
    kinds["scalar"].update(SPARK_GRAMMAR)
    kinds["volatile"] = set(
        "current_date current_timestamp now localtimestamp curdate rand random randn uuid shuffle "
        "randstr uniform monotonically_increasing_id spark_partition_id".split()
    )
    return kinds


def postgres() -> tuple[str, Kinds]:
    """``pg_proc``, with all extensions that come with the server."""
    extensions = _psql("select name from pg_available_extensions order by 1")
    for (name,) in extensions:
        _psql(f'create extension if not exists "{name}" cascade', check=False)
    kinds: Kinds = {}
    rows = _psql(
        "select distinct lower(p.proname), p.prokind, p.proretset, p.provolatile, "
        "coalesce(a.aggkind::text, '') from pg_proc p left join pg_aggregate a "
        "on a.aggfnoid = p.oid where p.prokind <> 'p' and p.prorettype not in "
        "(select oid from pg_type where typname in ('trigger', 'event_trigger', 'internal', "
        "'language_handler', 'fdw_handler', 'index_am_handler', 'table_am_handler', "
        "'tsm_handler'))"
    )
    for name, kind, returns_set, volatile, ordered in rows:
        kind_of_function = {"a": "aggregate", "w": "window"}.get(kind) or (
            "generator" if returns_set == "t" else "scalar"
        )
        kinds.setdefault(kind_of_function, set()).add(name)
        if volatile == "v":
            kinds.setdefault("volatile", set()).add(name)
        if ordered in ("o", "h"):
            kinds.setdefault("ordered", set()).add(name)
    for kind, names in POSTGRES_LATER.items():
        kinds.setdefault(kind, set()).update(names.split())
    kinds["scalar"].update(POSTGRES_GRAMMAR)
    kinds["aggregate"].add("grouping")
    ((version,),) = _psql("show server_version")
    return f"PostgreSQL {version.split()[0]} and its extensions: pg_proc", kinds


def _psql(query: str, check: bool = True) -> list[list[str]]:
    done = subprocess.run(
        ["psql", "-AtX", "-F", "\t", "-c", query], capture_output=True, text=True, check=check
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


def sqlite() -> tuple[str, Kinds]:
    """``pragma_function_list``; of a window function that also groups, it says that it windows."""
    connection = sqlite3.connect(":memory:")
    rows = connection.execute("select distinct lower(name), type from pragma_function_list")
    kinds: Kinds = {}
    for name, kind in rows:
        kind_of_function = {"a": "aggregate", "w": "window"}.get(kind, "scalar")
        if kind == "w":
            try:  # an aggregate does without OVER
                arguments = ("", "1", "1, 1", "1, 1, 1")
                for given in arguments:
                    try:
                        connection.execute(f"select {name}({given})")
                    except sqlite3.OperationalError as error:
                        if "wrong number of arguments" in str(error):
                            continue
                        raise
                    kind_of_function = "aggregate"
                    break
            except sqlite3.OperationalError:
                kind_of_function = "window"
        kinds.setdefault(kind_of_function, set()).add(name)
    # min(a, b) of several arguments is a scalar function, which the catalogue lists as well.
    kinds["table"] = {"generate_series", "json_each", "json_tree"}
    kinds["scalar"].update(SQLITE_GRAMMAR)
    kinds["volatile"] = {"random", "randomblob", "changes", "total_changes", "last_insert_rowid"}
    return f"SQLite {sqlite3.sqlite_version}: pragma_function_list", kinds


def clickhouse() -> tuple[str, Kinds]:
    """``system.functions`` and ``system.table_functions``; aggregates take combinators, too."""
    import chdb

    def rows(query: str) -> list[list[object]]:
        text = str(chdb.query(query, "JSONCompactEachRow"))
        return [json.loads(line) for line in text.splitlines() if line]

    kinds: Kinds = {"volatile": set(), "combinator": set()}
    for name, aggregate, deterministic, categories in rows(
        "select lower(name), is_aggregate, deterministic, categories from system.functions"
    ):
        kind = "scalar"
        if aggregate:
            kind = "window" if "window" in str(categories).lower() else "aggregate"
        kinds.setdefault(kind, set()).add(str(name))
        if deterministic == 0:
            kinds["volatile"].add(str(name))
    kinds["table"] = {str(n) for (n,) in rows("select lower(name) from system.table_functions")}
    kinds["combinator"] = {
        str(n)
        for (n,) in rows("select lower(name) from system.aggregate_function_combinators")
        if n
    }
    kinds["generator"] = {"arrayjoin"} | {
        str(n)
        for (n,) in rows(
            "select lower(name) from system.functions where lower(alias_to) = 'arrayjoin'"
        )
    }
    kinds["scalar"] = kinds["scalar"] - kinds["generator"] | set(CLICKHOUSE_GRAMMAR)
    ((version,),) = rows("select version()")
    return f"ClickHouse {version}: system.functions", kinds


ENGINES: Final[dict[str, Callable[[], tuple[str, Kinds]]]] = {
    "duckdb": duckdb,
    "spark": spark,
    "postgres": postgres,
    "sqlite": sqlite,
    "clickhouse": clickhouse,
}


def written(source: str, kinds: Kinds) -> str:
    """A list as it is kept: a section for each kind, its names in order."""
    lines = [f"# {source}"]
    for kind in ("aggregate", "window", "generator", "table", "ordered", "combinator", "volatile"):
        if kinds.get(kind):
            lines += [f"[{kind}]", *_wrapped(kinds[kind])]
    return "\n".join([*lines, "[scalar]", *_wrapped(kinds["scalar"]), ""])


def _wrapped(names: Iterable[str]) -> list[str]:
    plain = sorted(name for name in names if NAME.fullmatch(name))
    return textwrap.wrap(" ".join(plain), 98, break_on_hyphens=False)


def main(engines: list[str]) -> None:
    """Write the lists of these engines."""
    for engine in engines:
        (LISTS / f"{engine}.txt").write_text(written(*ENGINES[engine]()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
