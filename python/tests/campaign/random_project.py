"""A dbt project nobody wrote: random SQL over random data, every model of it run before it is kept.

Domains are small and NULLs many, so that joins repeat rows, keys are nearly unique and tests both
pass and fail. Each window and each LIMIT orders by all there is, so that the same project returns
the same rows whatever the engine does; what is left open by SQL would be no oracle.
"""

from __future__ import annotations

import random
import re
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import jinja2
import sqlglot
import yaml

sys.path.append(str(Path(__file__).parents[1]))  # as pytest does

from generators.catalogue import class_of
from project_queries import WORDS, ProjectQueries

TYPES: Final = {
    "int": "integer", "str": "varchar", "date": "date", "bool": "boolean", "num": "decimal(12, 2)",
}  # fmt: skip
"""The SQL type of each class of columns that a model may have."""
FLOATS: Final = ("DOUBLE", "FLOAT")
NAME: Final = re.compile(r"[A-Za-z_]\w*")

CATALOG: Final = "lab"
SCHEMA: Final = "main_lab"
RAW: Final = "raw"

MAX_ROWS: Final = 600
"""Rows a model may have; one with more is written again."""

MAX_ESTIMATED: Final = 200_000
"""Rows that DuckDB may expect anywhere in a query: what takes seconds is written again."""


PATIENCE: Final = 5.0
"""Seconds a query may take."""


class Column(NamedTuple):
    """A column and its class of types."""

    name: str
    kind: str


STEMS: Final = {"int": "num", "str": "word", "date": "day", "bool": "flag", "num": "amount"}


@dataclass
class Relation:
    """Something a query can read: its text in Jinja, its name in SQL, its columns."""

    jinja: str
    name: str
    columns: list[Column]
    rows: int = 0

    def of(self, *kinds: str) -> list[Column]:
        return [c for c in self.columns if c.kind in kinds]


@dataclass
class Model:
    """A model as written."""

    name: str
    raw: str
    config: dict[str, Any]
    relation: Relation
    tests: list[Any] = field(default_factory=list)
    column_tests: dict[str, list[Any]] = field(default_factory=dict)
    column_meta: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: int | None = None


def rows_of(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query; one that has no end is stopped, all others take milliseconds."""
    timer = threading.Timer(PATIENCE, connection.interrupt)
    timer.start()
    try:
        return connection.execute(sql).fetchmany(MAX_ROWS + 1)
    finally:
        timer.cancel()


def _parses(condition: str) -> bool:
    """Whether sqlglot, which writes the edits, reads a condition: not so `k in []::integer[]`."""
    try:
        sqlglot.parse_one(f"select {condition}", dialect="duckdb")
    except sqlglot.ParseError:
        return False
    return True


class Maker:
    """Writes one project.

    Args:
        seed: the same seed writes the same project.
        models: how many models it has.
    """

    def __init__(self, seed: int, models: int = 26) -> None:
        self.random = random.Random(seed)
        self.wanted = models
        self.connection, *self.others = (duckdb.connect(config={"threads": 1}) for _ in range(3))
        self.run = self.connection.execute
        self.jinja = jinja2.Environment(undefined=jinja2.StrictUndefined)
        self.names = 0
        self.relations: list[Relation] = []
        self.models: list[Model] = []
        self.singular: dict[str, str] = {}
        self.sources: dict[str, tuple[list[Column], list[tuple[Any, ...]]]] = {}
        self.seeds: dict[str, tuple[list[Column], list[list[str]]]] = {}

    # -- small choices ------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}_{self.names}"

    def choose(self, items: Any) -> Any:
        return self.random.choice(list(items))

    # -- data ---------------------------------------------------------------------------------------

    def value(self, kind: str, domain: int) -> Any:
        if self.chance(0.12):
            return None
        if kind == "int":
            return self.random.randrange(domain)
        if kind == "str":
            return self.random.choice(WORDS)
        if kind == "date":
            return f"2026-01-{self.random.randrange(1, 8):02d}"
        if kind == "bool":
            return self.chance(0.5)
        return self.random.randrange(0, 400) / 4

    def make_sources(self) -> None:
        for connection in (self.connection, *self.others):
            connection.execute(f"create schema {RAW}")
        for number in range(5):
            columns = [Column("id", "int"), Column("k", "int"), Column("v", "int")]
            for kind in self.random.sample(("str", "date", "bool", "num", "int", "str", "num"), 4):
                columns.append(Column(self.name(STEMS[kind]), kind))
            size = self.random.randrange(25, 60)
            unique = self.chance(0.6)
            rows = []
            for row in range(size):
                key = row if unique else self.random.randrange(size)
                rows.append(
                    (key, *(self.value(c.kind, 6 if c.name == "k" else 12) for c in columns[1:]))
                )
            name = f"src_{number}"
            self.sources[name] = (columns, rows)
            self.create_everywhere(f"{RAW}.{name}", columns, rows)
            self.relations.append(
                Relation(f"{{{{ source('raw', '{name}') }}}}", f"{RAW}.{name}", columns, rows=size)
            )
        for number in range(2):
            columns = [
                Column("k" if number else "v", "int"),
                Column(f"label_{number}", "str"),
                Column(f"rate_{number}", "num"),
            ]
            rows = [
                (i, self.value("str", 0) or f"w{i}", self.value("num", 0) or 1.5) for i in range(8)
            ]
            name = f"seed_{number}"
            self.seeds[name] = (columns, [[str(v) for v in row] for row in rows])
            self.create_everywhere(f"main.{name}", columns, rows)
            self.relations.append(
                Relation(f"{{{{ ref('{name}') }}}}", f"main.{name}", columns, rows=8)
            )

    def create_everywhere(
        self, name: str, columns: list[Column], rows: list[tuple[Any, ...]]
    ) -> None:
        self.create(name, columns, rows, self.run)
        for other, there in zip(self.others, (rows[::-1], rows[1::2] + rows[::2]), strict=True):
            self.create(name, columns, there, other.execute)

    def create(
        self, name: str, columns: list[Column], rows: list[tuple[Any, ...]], run: Any
    ) -> None:
        listed = ", ".join(f"{c.name} {TYPES[c.kind]}" for c in columns)
        run(f"create table {name} ({listed})")
        for row in rows:
            values = ", ".join(
                "null" if v is None else repr(v) if not isinstance(v, bool) else str(v) for v in row
            )
            run(f"insert into {name} values ({values})")

    # -- models ---------------------------------------------------------------------------------------

    def queries(self) -> ProjectQueries:
        """The grammar with decisions of its own, over all there is by now."""
        self.names += 1
        relations = {r.jinja: [(c.name, c.kind) for c in r.columns] for r in self.relations}
        return ProjectQueries(relations, self.names, self.random.getrandbits(60), self.runs)

    def runs(self, sql: str) -> bool:
        """Whether a query runs, and gives any rows."""
        try:
            text = self.render(sql)
            if self.most_rows(text) > MAX_ESTIMATED:
                return False
            return bool(rows_of(self.connection, text))
        except (duckdb.Error, jinja2.TemplateError):
            return False

    def good(self) -> tuple[str, list[Column]]:
        """A query that may be a model."""
        form = self.choose((*["imports"] * 4, "model", "query"))
        while True:
            sql = self.queries().written(form)
            columns = self.tried(sql)
            if columns is not None:
                return sql, columns

    def tried(self, sql: str) -> list[Column] | None:
        """The columns of a query that may be a model: None where it may not.

        It can be a view; sqlglot writes it as it reads it; it has some rows, and not too many, which it alone
        decides: they are the same wherever the rows of its relations lie.
        """
        if not self.runs(sql):
            return None
        try:
            text = self.render(sql)
            self.run(f"create or replace view main.probe as {text}")
            columns = self.described("main.probe")
            names = [c.name for c in columns]
            if not (2 <= len(columns) <= 24 and all(map(NAME.fullmatch, names))):
                return None
            if len({*map(str.lower, names)}) < len(names):
                return None
            if not all(c.kind in TYPES for c in columns):
                return None
            rows = rows_of(self.connection, "select * from main.probe")
            if not 2 <= len(rows) <= MAX_ROWS:
                return None
            constant = [len({*map(repr, values)}) == 1 for values in zip(*rows, strict=True)]
            if 2 * sum(constant) > len(constant):
                return None  # few edits of it would change anything
            bag = sorted(map(repr, rows))
            for other in self.others:
                if sorted(map(repr, rows_of(other, text))) != bag:
                    return None
            tree = sqlglot.parse_one(text, dialect="duckdb")
            if repr(sqlglot.parse_one(tree.sql("duckdb"), dialect="duckdb")) != repr(tree):
                return None
        except (duckdb.Error, jinja2.TemplateError, sqlglot.ParseError):
            return None
        return columns

    def most_rows(self, text: str) -> int:
        """How many rows DuckDB expects a query to have, at most, on the way."""
        plan = self.run(f"explain (format json) {text}").fetchone()[1]
        return max(
            (int(n) for n in re.findall(r'"Estimated Cardinality": "~?(\d+)', plan)), default=0
        )

    def described(self, relation: str) -> list[Column]:
        """The columns of a relation, with the classes of their types."""
        rows = self.run(f"describe {relation}").fetchall()
        return [
            Column(name, "float" if type_ in FLOATS else class_of(type_))
            for name, type_, *_ in rows
        ]

    def render(self, text: str, **more: Any) -> str:
        """The SQL of a Jinja text, as the generator's own DuckDB reads it."""
        given = {
            "ref": lambda name, v=None: (
                f"main.{name}_v{v}" if v else self.latest.get(name, f"main.{name}")
            ),
            "source": lambda schema, name: f"{schema}.{name}",
            "var": lambda name: VARS[name],
            "env_var": lambda name, default: default,
            "plus_offset": lambda text: f"({text} + {VARS['offset']})",
            "tidy": lambda text: f"coalesce(lower({text}), 'none')",
            "is_incremental": lambda: False,
            "columns_of": self.columns_of,
            "values_of": self.values_of,
            **more,
        }
        return self.jinja.from_string(text).render(**given)

    def columns_of(self, relation: str) -> list[str]:
        return [str(r[0]) for r in self.run(f"describe {relation}").fetchall()]

    def values_of(self, relation: str, column: str) -> list[Any]:
        rows = self.run(
            f"select distinct {column} from {relation} where {column} is not null order by 1 limit 4"
        ).fetchall()
        return [r[0] for r in rows]

    def add(
        self,
        name: str,
        raw: str,
        columns: list[Column],
        config: dict[str, Any],
        *,
        version: int | None = None,
    ) -> Model:
        table = f"{name}_v{version}" if version else name
        text = self.render(raw)
        self.run(f"create table main.{table} as {text}")
        for other, order in zip(self.others, ("place desc", "place % 2, place"), strict=True):
            # The same rows in another order.
            other.execute(
                f"create table main.{table} as select made.* from (select made, row_number() over () as place "
                f"from ({text}\n) as made) as numbered order by {order}"
            )
        count = self.run(f"select count(*) from main.{table}").fetchone()[0]
        jinja = f"{{{{ ref('{name}', v={version}) }}}}" if version else f"{{{{ ref('{name}') }}}}"
        relation = Relation(jinja, f"main.{table}", columns, rows=count)
        model = Model(name, raw, config, relation, version=version)
        self.models.append(model)
        self.relations.append(relation)
        return model

    def make_models(self) -> None:
        for number in range(self.wanted):
            sql, columns = self.good()
            name = f"m_{number:02d}"
            kind = self.choose(("view", "view", "table", "table", "ephemeral", "incremental"))
            config: dict[str, Any] = {"materialized": kind}
            ints = [c.name for c in columns if c.kind == "int"]
            if kind == "incremental" and not ints:
                config["materialized"] = kind = "table"
            if kind == "incremental":
                config["incremental_strategy"] = "delete+insert"
                config["unique_key"] = ints[0]
                over, listed = self.name("src"), ", ".join(c.name for c in columns)
                sql = (
                    f"select {listed} from (\n{sql}\n) as {over}\n"
                    f"{{% if is_incremental() %}}\nwhere {ints[0]} >= (select max({ints[0]}) - 3 from {{{{ this }}}})\n{{% endif %}}"
                )
            if kind == "table" and ints and self.chance(0.3):
                config["post_hook"] = (
                    f"delete from {{{{ this }}}} where {ints[0]} = {self.random.randrange(8)}"
                )
            if number == self.wanted // 2:
                self.versioned(name)
                continue
            self.add(name, sql, columns, config)
        self.introspective()
        self.reading_properties()

    def versioned(self, name: str) -> None:
        """One model in two versions; who says none gets the second."""
        for version in (1, 2):
            sql, columns = self.good()
            model = self.add(name, sql, columns, {"materialized": "table"}, version=version)
        self.latest[name] = f"main.{name}_v2"
        self.relations.append(Relation(f"{{{{ ref('{name}') }}}}", model.relation.name, columns))

    def introspective(self) -> None:
        """Two models that query the warehouse while they compile."""
        of = [
            r
            for r in self.relations
            if "ref(" in r.jinja and "seed" not in r.jinja and "v=" not in r.jinja
        ]
        stored = {m.relation.jinja for m in self.models if m.config["materialized"] != "ephemeral"}
        of = [r for r in of if r.jinja in stored]
        for r in of[:1]:
            columns = self.columns_of(r.name)
            raw = f"select {{% for c in columns_of({r.jinja[3:-3]}) %}}{{{{ c }}}}{{{{ ', ' if not loop.last }}}}{{% endfor %}} from {r.jinja}"
            self.add(
                "m_star",
                raw,
                [c for n in columns for c in r.columns if c.name == n],
                {"materialized": "view"},
            )
        # The values stand in its SQL, and dbt's rows are those here where no hook deletes any.
        hooked = {m.relation.jinja for m in self.models if "post_hook" in m.config}
        listed = [
            (r, c.name)
            for r in of
            if r.jinja not in hooked and r.of("int")
            for c in r.of("str")
            if self.are_words(r, c.name)
        ]
        for r, t in listed[:1]:
            i = r.of("int")[0].name
            raw = (
                f"select {i}{{% for v in values_of({r.jinja[3:-3]}, '{t}') %}}, "
                f"count(case when {t} = '{{{{ v }}}}' then 1 end) as of_{{{{ loop.index }}}}{{% endfor %}} from {r.jinja} group by {i}"
            )
            names = self.columns_of(f"({self.render(raw)})")
            self.add("m_turned", raw, [Column(n, "int") for n in names], {"materialized": "table"})

    def are_words(self, r: Relation, column: str) -> bool:
        """Whether a column has values, and each can stand in quotes as it is."""
        distinct = f"select distinct {column} from {r.name} where {column} is not null"
        rows = self.run(distinct).fetchall()
        return bool(rows) and all(re.fullmatch(r"[\w ]+", str(value)) for (value,) in rows)

    def reading_properties(self) -> None:
        """Models whose hooks go by a property: of meta, of a column, of a key of their own."""
        stored = [m.relation for m in self.models if m.config["materialized"] != "ephemeral"]
        of = [r for r in stored if r.of("int") and "v=" not in r.jinja]
        for name, read in BOUNDS.items():
            relation = self.choose(of)
            column = self.choose(relation.of("int")).name
            meta = {"bound": self.random.randrange(3, 6)}
            hook = f"delete from {{{{ this }}}} where {column} >= {{{{ {read} }}}}"
            config = {"materialized": "table", "post_hook": hook.replace("COLUMN", column)}
            if name == "m_by_meta":
                config["meta"] = meta
            elif name == "m_by_config":
                config["lab_bound"] = meta["bound"]
            model = self.add(name, f"select * from {relation.jinja}", relation.columns, config)
            if name == "m_by_column":
                model.column_meta[column] = meta

    def order_readers(self) -> None:
        """Models that see the order of the rows that they read, each with a test of what it saw.

        The decisions are its own: the rest of a seed's project is the same without it.
        """
        rng = random.Random(self.names)
        stored = [
            m.relation
            for m in self.models
            if m.config["materialized"] != "ephemeral" and not m.version
        ]
        for number, (form, sql) in enumerate(READS_ORDER.items()):
            kinds = ("num",) if "{n}" in sql else tuple(TYPES)
            of = [r for r in stored if r.of(*kinds) and r.rows > 2]
            if not of:
                continue
            relation = rng.choice(of)
            column = rng.choice(relation.of(*kinds)).name
            raw = sql.format(c=column, n=column, r=relation.jinja)
            config = {"materialized": "table", "meta": {"reads_order": form}}
            model = self.add(f"m_order_{number}", raw, [Column("seen", "str")], config)
            self.relations.remove(model.relation)
            (seen,) = self.run(f"select seen from {model.relation.name}").fetchone()
            expression = f"seen is not distinct from '{seen}'".replace("'None'", "null")
            model.tests.append({"holds_everywhere": {"expression": expression}})

    # -- tests ----------------------------------------------------------------------------------------

    def make_tests(self) -> None:
        """Tests that mostly pass, read off the data, and some that do not."""
        for model in self.models:
            relation = model.relation
            rows = relation.rows
            if self.chance(0.5):
                low = max(0, rows - self.random.randrange(3))
                model.tests.append(
                    {"rows_between": {"at_least": low, "at_most": rows + self.random.randrange(3)}}
                )
            for column in relation.columns:
                self.column_tests(model, column)
            ints = relation.of("int")
            if ints and self.chance(0.4):
                condition = self.queries().row_condition(relation.columns)
                if "{" not in condition and _parses(condition):
                    model.tests.append({"holds_everywhere": {"expression": condition}})
            if len(relation.columns) > 1 and self.chance(0.3):
                pair = [c.name for c in self.random.sample(relation.columns, 2)]
                model.tests.append({"unique_together": {"columns": pair}})
        for number in range(max(6, self.wanted // 3)):
            sql = self.singular_test()
            if sql is not None:
                self.singular[f"check_{number}"] = sql

    def column_tests(self, model: Model, column: Column) -> None:
        name, c = model.relation.name, column.name
        tests = model.column_tests.setdefault(c, [])
        total, present, distinct = self.run(
            f"select count(*), count({c}), count(distinct {c}) from {name}"
        ).fetchone()
        where = {"where": self.choose((f"{c} is not null", f"length(cast({c} as varchar)) < 3"))}
        config = {"config": where} if self.chance(0.15) else {}
        if (present == total and self.chance(0.35)) or self.chance(0.04):
            tests.append({"not_null": config} if config else "not_null")
        if (distinct == present and self.chance(0.8)) or self.chance(0.04):
            tests.append({"unique": config} if config else "unique")
        if column.kind in ("int", "str") and distinct <= 9 and self.chance(0.25):
            rows = self.run(
                f"select distinct {c} from {name} where {c} is not null order by 1"
            ).fetchall()
            # dbt writes the values as they are: a quotation mark in one ends the text.
            values = [r[0] for r in rows if not isinstance(r[0], (dict, list))]
            values = [] if any("'" in str(value) for value in values) else values
            if self.chance(0.15) and values:
                values.pop()
            if values:
                tests.append(
                    {"accepted_values": {"values": values, "quote": column.kind == "str", **config}}
                )
        if column.kind == "int" and self.chance(0.25):
            for other in self.random.sample(self.relations, len(self.relations)):
                if "source" in other.jinja or other.name == name:
                    continue
                parents = [p.name for p in other.of("int")]
                for parent in parents:
                    orphans = self.run(
                        f"select count(*) from {name} where {c} is not null and {c} not in (select {parent} from {other.name} where {parent} is not null)"
                    ).fetchone()[0]
                    if orphans == 0 and present:
                        tests.append({"relationships": {"to": other.jinja[3:-3], "field": parent}})
                        return
        if column.kind in ("int", "num") and self.chance(0.25):
            low = self.run(f"select min({c}) from {name}").fetchone()[0]
            tests.append({"at_least": {"bound": int(low or 0) - (0 if self.chance(0.8) else -1)}})
        if column.kind == "int" and self.chance(0.2):
            total = self.run(f"select sum({c}) from {name}").fetchone()[0]
            tests.append({"sum_is": {"total": int(total or 0)}})

    def singular_test(self) -> str | None:
        """A test with a query of its own."""
        sql = self.queries().check()
        try:
            self.run(self.render(sql))
        except (duckdb.Error, jinja2.TemplateError):
            return None
        return sql

    # -- what is written --------------------------------------------------------------------------------

    def make(self) -> None:
        """Everything, in this process' own DuckDB."""
        self.latest: dict[str, str] = {}
        self.make_sources()
        self.make_models()
        self.make_tests()

    def write(self, folder: Path) -> None:
        """The dbt project as files."""
        files: dict[str, str] = {
            "dbt_project.yml": yaml.safe_dump(
                {
                    "name": "lab",
                    "version": "1.0.0",
                    "profile": "lab",
                    "vars": dict(VARS),
                    "flags": {
                        "send_anonymous_usage_stats": False,
                        "require_generic_test_arguments_property": False,
                    },
                }
            ),
            "profiles.yml": PROFILE,
            "macros/macros.sql": MACROS,
            "tests/generic/generic.sql": GENERIC,
        }
        listed: dict[str, dict[str, Any]] = {}
        for model in self.models:
            config = ", ".join(f"{k}={v!r}" for k, v in model.config.items())
            name = f"{model.name}_v{model.version}" if model.version else model.name
            files[f"models/{name}.sql"] = f"{{{{ config({config}) }}}}\n\n{model.raw}\n"
            columns: list[dict[str, Any]] = [
                {"name": c, "data_tests": t, **self.meta_of(model, c)}
                for c, t in model.column_tests.items()
                if t or c in model.column_meta
            ]
            if model.version:
                entry = listed.setdefault(
                    model.name, {"name": model.name, "latest_version": 2, "versions": []}
                )
                entry["versions"].append(
                    {"v": model.version, "columns": columns, "data_tests": model.tests}
                )
            else:
                listed[model.name] = {
                    "name": model.name,
                    "columns": columns,
                    "data_tests": model.tests,
                }
        for name, (columns, rows) in self.seeds.items():
            lines = [",".join(c.name for c in columns), *(",".join(r) for r in rows)]
            files[f"seeds/{name}.csv"] = "\n".join(lines) + "\n"
        for name, sql in self.singular.items():
            files[f"tests/{name}.sql"] = sql + "\n"
        tables = [
            {"name": n, "columns": [{"name": c.name} for c in columns], "data_tests": []}
            for n, (columns, _) in self.sources.items()
        ]
        snapshots = self.snapshots(files)
        files["models/models.yml"] = yaml.safe_dump(
            {
                "version": 2,
                "models": list(listed.values()),
                "snapshots": snapshots,
                "sources": [{"name": "raw", "schema": RAW, "tables": tables}],
            },
            sort_keys=False,
        )
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    @staticmethod
    def meta_of(model: Model, column: str) -> dict[str, Any]:
        meta = model.column_meta.get(column)
        return {"config": {"meta": meta}} if meta else {}

    def snapshots(self, files: dict[str, str]) -> list[dict[str, Any]]:
        """Snapshots of models that have a key, one of each strategy."""
        made: list[dict[str, Any]] = []
        for model in self.models:
            if len(made) == 2 or model.version or model.config["materialized"] == "ephemeral":
                continue
            for column in model.relation.of("int"):
                total, distinct = self.run(
                    f"select count(*), count(distinct {column.name}) from {model.relation.name}"
                ).fetchone()
                days = model.relation.of("date")
                if total == distinct and (made or days):
                    name = f"snap_{len(made)}"
                    how = (
                        "strategy='check', check_cols='all'"
                        if made
                        else f"strategy='timestamp', updated_at='{days[0].name}'"
                    )
                    files[f"snapshots/{name}.sql"] = (
                        f"{{% snapshot {name} %}}\n{{{{ config(target_schema=target.schema, unique_key='{column.name}', {how}) }}}}\n"
                        f"select * from {model.relation.jinja}\n{{% endsnapshot %}}\n"
                    )
                    made.append(
                        {
                            "name": name,
                            "columns": [
                                {"name": column.name, "data_tests": ["not_null", "unique"]}
                            ],
                        }
                    )
                    break
        for number in range(len(made), 2):
            name, source = f"snap_{number}", f"src_{number}"
            files[f"snapshots/{name}.sql"] = (
                f"{{% snapshot {name} %}}\n{{{{ config(target_schema=target.schema, unique_key='k', strategy='check', check_cols='all') }}}}\n"
                f"select k, count(*) as n, max(v) as top from {{{{ source('raw', '{source}') }}}} where k is not null group by k\n"
                "{% endsnapshot %}\n"
            )
            columns = [
                {"name": "k", "data_tests": ["not_null", "unique"]},
                {"name": "n", "data_tests": [{"sum_is": {"total": 50}}]},
            ]
            made.append({"name": name, "columns": columns})
        return made

    def load(self, database: Path) -> None:
        """The sources' tables in a database file, as a loader would bring them."""
        database.parent.mkdir(parents=True, exist_ok=True)
        with duckdb.connect(str(database)) as connection:
            connection.execute(f"create schema if not exists {RAW}")
            for name, (columns, rows) in self.sources.items():
                self.create(f"{RAW}.{name}", columns, rows, connection.execute)


BOUNDS: Final = {
    "m_by_meta": "model.meta.bound",
    "m_by_column": "model.columns['COLUMN'].meta.bound",
    "m_by_config": "config.get('lab_bound')",
}
"""Models with hooks that delete by a bound, and where each is said."""

READS_ORDER: Final = {
    "a list": "select md5(list({c})::varchar) as seen from {r}",
    "a text of all": "select md5(string_agg({c}::varchar, ',')) as seen from {r}",
    "the first": "select md5(first({c})::varchar) as seen from {r}",
    "a limit": "select md5(max({c}::varchar)) as seen from (select {c} from {r} limit 3) as few",
    "the number of a row": "select md5(string_agg(c::varchar, ',' order by n)) as seen "
    "from (select {c} as c, row_number() over () as n from {r}) as numbered where n > 1",
    "the row before": "select md5(count(*)::varchar) as seen "
    "from (select {c} as c, lag({c}) over () as p from {r}) as one where c is distinct from p",
    "distinct on": "select md5(count(c)::varchar || max(c::varchar)) as seen "
    "from (select distinct on ({c} is null) {c} as c from {r}) as one",
    "a sum of floats": "select md5(sum({n}::double / 3)::varchar) as seen from {r}",
    "the type": "select max(typeof({c})) as seen from {r}",
}
"""Queries that see what SQL leaves open of a relation: how its rows lie, and the types of its columns."""

VARS: Final = {"threshold": 5, "offset": 2}

PROFILE: Final = """lab:
  target: duckdb
  outputs:
    duckdb:
      type: duckdb
      path: "{{ env_var('RIPPLE_DUCKDB_PATH') }}"
      schema: main_lab
      threads: 1
      settings: {threads: 1}  # a sum of floating-point numbers depends on how many share it
"""

MACROS: Final = """{% macro plus_offset(expression) %}({{ expression }} + {{ var('offset') }}){% endmacro %}

{% macro tidy(expression) %}coalesce(lower({{ expression }}), 'none'){% endmacro %}

{% macro columns_of(relation) %}
    {% if not execute %}{{ return(['1']) }}{% endif %}
    {{ return(adapter.get_columns_in_relation(relation) | map(attribute='name') | list) }}
{% endmacro %}

{% macro values_of(relation, column) %}
    {% if not execute %}{{ return([]) }}{% endif %}
    {% set found = run_query('select distinct ' ~ column ~ ' from ' ~ relation ~ ' where ' ~ column ~ ' is not null order by 1 limit 4') %}
    {{ return(found.columns[0].values() | list) }}
{% endmacro %}
"""

GENERIC: Final = """{% test rows_between(model, at_least, at_most) %}
select count(*) as n from {{ model }} having count(*) not between {{ at_least }} and {{ at_most }}
{% endtest %}

{% test holds_everywhere(model, expression) %}
select 1 as broken from {{ model }} where not ({{ expression }})
{% endtest %}

{% test unique_together(model, columns) %}
select {{ columns | join(', ') }}, count(*) as n from {{ model }} group by {{ columns | join(', ') }} having count(*) > 1
{% endtest %}

{% test at_least(model, column_name, bound) %}
select {{ column_name }} from {{ model }} where {{ column_name }} < {{ bound }}
{% endtest %}

{% test sum_is(model, column_name, total) %}
select sum({{ column_name }}) as total from {{ model }} having coalesce(sum({{ column_name }}), 0) <> {{ total }}
{% endtest %}
"""
