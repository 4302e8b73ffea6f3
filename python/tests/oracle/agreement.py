"""Our lineage against Catalyst's, query by query, and the report of where they differ.

    python tests/oracle/agreement.py [CORPUS ...] [--all]

Corpora: ``fixtures`` (the Spark files of tests/fixtures/lineage), ``tpch`` and ``tpcds`` (after
`make_tpc.py`), and the path of any dbt target folder with compiled SQL. Compared, as
sets of base columns: each output's value sources (DIRECT), each output's indirect sources, and the
row set's sources. Where the columns agree, so must the kinds; only IDENTITY and TRANSFORMATION are
taken as one there, because a plan does not tell Spark's own casts from the user's (the fixtures tell
them apart by hand). A query where either side has no answer counts as disagreement in all of them.
"""

from __future__ import annotations

import logging
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does

from flow.lineage_fixtures import read_fixtures, read_tables
from linked_tables import table_relation
from oracle.catalyst import Catalyst, Deps, PlanGapError, Reading
from oracle.make_tpc import load

from dbt_ripple.artifacts import read_project
from dbt_ripple.flow.ir import (
    AGGREGATION,
    DIRECT,
    EPHEMERAL_PREFIX,
    KINDS,
    MASK_SHIFT,
    TRANSFORMATION,
)
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import ROWS, Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tables = dict[str, list[tuple[str, str]]]
"""Table (as written, with or without its schema) -> its columns and their Spark types."""


@dataclass
class Case:
    """One query of a corpus, in Spark's dialect.

    Attributes:
        name: what to call it. sql: one statement.
        creates: a table that later cases read and that has this query's columns.
    """

    name: str
    sql: str
    creates: str | None = None


@dataclass
class Corpus:
    """Queries over the same empty tables, in a schema of their own.

    Attributes:
        ephemeral: ephemeral models' SQL by name; queries hold it as a CTE ``__dbt__cte__<name>``.
    """

    name: str
    schema: str
    tables: Tables
    cases: list[Case]
    ephemeral: dict[str, str] = field(default_factory=dict)


@dataclass
class Disagreement:
    """One place where the two differ.

    Attributes:
        case: the query. what: ``names``, ``columns``, ``direct``, ``indirect``, ``rows``, ``kinds``,
            or ``error`` where a side has no answer. where: the output column, if one.
        ours, catalyst: what each side says.
    """

    case: Case
    what: str
    where: str
    ours: str
    catalyst: str

    def __str__(self) -> str:
        return (
            f"{self.case.name} {self.what} {self.where}\n"
            f"    ours:     {self.ours}\n    Catalyst: {self.catalyst}"
        )


@dataclass
class Report:
    """Agreement over one corpus: how many were compared, how many equal, and what was not."""

    corpus: str
    queries: int = 0
    queries_equal: int = 0
    columns: int = 0
    direct: int = 0
    indirect: int = 0
    rows: int = 0
    kinds: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.corpus}: queries {self.queries_equal}/{self.queries}, value sources "
            f"{self.direct}/{self.columns} columns, indirect sources {self.indirect}/"
            f"{self.columns} columns, row sources {self.rows}/{self.queries} queries, kinds "
            f"{self.kinds}/{self.columns + self.queries}"
        )


# -- our side ------------------------------------------------------------------------------------


def link_ours(sql: str, corpus: Corpus, dialect: str = "spark") -> Linked:
    """Lower and link one query over the corpus's tables.

    Raises:
        ValueError: the query was not analysed.
    """
    tables = {qualified(n, corpus.schema): [c for c, _ in t] for n, t in corpus.tables.items()}

    def relation_of(key: str, _: str) -> Relation:
        if key.startswith(EPHEMERAL_PREFIX):
            return linked_of(corpus.ephemeral[key.removeprefix(EPHEMERAL_PREFIX)]).relation
        name = qualified(key, corpus.schema)
        return table_relation(name, tables[name])

    def linked_of(query: str) -> Linked:
        lowered = lower(query, dialect)
        if lowered.rel is None:
            raise ValueError(str(lowered.reason))
        return link(lowered, relation_of, dialect)

    return linked_of(sql)


def read_ours(sql: str, corpus: Corpus, dialect: str = "spark") -> Reading:
    """What the engine says of one query, as the oracle says it.

    Raises:
        ValueError: the query was not analysed, reads a name that is missing, or has columns
            that are not known.
    """
    linked = link_ours(sql, corpus, dialect)
    if linked.missing or linked.unknown:
        raise ValueError(
            str(linked.unknown) if linked.unknown else f"missing {', '.join(linked.missing)}"
        )
    relation = linked.relation
    if relation.unlisted:
        raise ValueError("columns of the output that are not known")
    return Reading(
        relation.names,
        [_columns_only(column.deps) for column in relation.columns],
        _columns_only(relation.rows.deps),
    )


def fingerprints(sql: str, corpus: Corpus) -> tuple[object, ...]:
    """Everything of a query that a change of its data would move; its text where it is opaque."""
    try:
        linked = link_ours(sql, corpus)
    except ValueError:
        return (sql,)
    relation = linked.relation
    return (
        relation.rows.fp,
        tuple(relation.fps),
        tuple(rest.fp() for rest in relation.unlisted),
        tuple(linked.missing),
    )


def qualified(name: str, schema: str) -> str:
    """``schema.table`` of a name as written, whatever the catalog before it."""
    parts = name.lower().replace("`", "").split(".")
    return ".".join(parts[-2:] if len(parts) > 1 else [schema, parts[0]])


def _columns_only(deps: dict[tuple[str, str], int]) -> Deps:
    return {key: mask for key, mask in deps.items() if key[1] != ROWS}


# -- comparison ----------------------------------------------------------------------------------


def _direct(deps: Deps) -> set[str]:
    return {".".join(key) for key, mask in deps.items() if mask & DIRECT}


def _indirect(deps: Deps) -> set[str]:
    return {".".join(key) for key, mask in deps.items() if mask & ~DIRECT}


def _kinds(deps: Deps) -> dict[tuple[str, str], int]:
    """Kinds with IDENTITY and masking folded away."""
    folded = {}
    for key, mask in deps.items():
        direct = mask & DIRECT
        aggregated = direct & (AGGREGATION | AGGREGATION << MASK_SHIFT)
        other = direct & ~(AGGREGATION | AGGREGATION << MASK_SHIFT)
        folded[key] = (
            mask & ~DIRECT | (AGGREGATION if aggregated else 0) | (TRANSFORMATION if other else 0)
        )
    return folded


def shown(deps: Deps) -> str:
    """Dependencies as one line, for people."""
    parts = []
    for key, mask in sorted(deps.items()):
        kinds = "+".join(kind for bit, _, kind, _ in KINDS if mask & bit)
        parts.append(f"{key[0].rpartition('.')[2]}.{key[1]} {kinds}")
    return ", ".join(parts) or "nothing"


def compare(case: Case, ours: Reading, theirs: Reading, report: Report) -> None:
    """Count one query into the report."""
    before = len(report.disagreements)

    def differ(what: str, where: str, a: str, b: str) -> None:
        report.disagreements.append(Disagreement(case, what, where, a, b))

    report.queries += 1
    report.columns += len(theirs.columns)
    if len(ours.columns) != len(theirs.columns):
        differ("columns", "", ", ".join(ours.names), ", ".join(theirs.names))
    else:
        for i, (mine, other) in enumerate(zip(ours.columns, theirs.columns, strict=True)):
            name = theirs.names[i]
            # Names the engine makes up for expressions are spelled its own way.
            if re.fullmatch(r"\w+", name) and ours.names[i].lower() != name.lower():
                differ("names", f"column {i + 1}", ours.names[i], name)
            where = f"column {i + 1} ({name})"
            if _direct(mine) == _direct(other):
                report.direct += 1
            else:
                differ("direct", where, shown(mine), shown(other))
            if _indirect(mine) == _indirect(other):
                report.indirect += 1
            else:
                differ("indirect", where, shown(mine), shown(other))
            if _kinds(mine) == _kinds(other):
                report.kinds += 1
            elif _direct(mine) == _direct(other) and _indirect(mine) == _indirect(other):
                differ("kinds", where, shown(mine), shown(other))
    report.kinds += _kinds(ours.rows) == _kinds(theirs.rows)
    if set(ours.rows) == set(theirs.rows):
        report.rows += 1
        if _kinds(ours.rows) != _kinds(theirs.rows):
            differ("kinds", "rows", shown(ours.rows), shown(theirs.rows))
    else:
        extra, lacking = set(ours.rows) - set(theirs.rows), set(theirs.rows) - set(ours.rows)
        differ(
            "rows",
            "",
            f"too many: {shown({k: ours.rows[k] for k in extra})}",
            f"not ours: {shown({k: theirs.rows[k] for k in lacking})}",
        )
    report.queries_equal += len(report.disagreements) == before


def agreement(spark: SparkSession, corpus: Corpus) -> Report:
    """Compare all queries of a corpus; its tables are created (empty) and dropped again."""
    # pyspark logs each refused query with its whole Java stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    oracle = Catalyst(spark)
    report = Report(corpus.name)
    made = create_tables(spark, corpus)
    try:
        spark.sql(f"use {corpus.schema}")
        for case in corpus.cases:
            try:
                theirs = oracle.read(case.sql)
                if case.creates and case.creates not in corpus.tables:
                    corpus.tables[case.creates] = theirs.types
                    create_table(spark, case.creates, theirs.types)
            except Exception as error:  # Spark's own errors come through py4j
                kind = "oracle" if isinstance(error, PlanGapError) else "Spark"
                reason = str(error).strip().splitlines()[0][:300]
                report.queries += 1
                report.disagreements.append(
                    Disagreement(case, "error", "", "", f"{kind}: {reason}")
                )
                continue
            try:
                ours = read_ours(case.sql, corpus)
            except Exception as error:  # the engine must not raise, and a report must not end there
                report.queries += 1
                report.columns += len(theirs.columns)
                message = str(error) if type(error) is ValueError else f"raised {error!r}"
                report.disagreements.append(Disagreement(case, "error", "", message, ""))
                continue
            compare(case, ours, theirs, report)
    finally:
        drop_schemas(spark, made)
    return report


def create_tables(spark: SparkSession, corpus: Corpus) -> list[str]:
    """Create a corpus's empty tables; returns the schemas that were made for them."""
    made: list[str] = []
    names = {qualified(name, corpus.schema): columns for name, columns in corpus.tables.items()}
    for schema in {corpus.schema, *(n.split(".")[0] for n in names)}:
        spark.sql(f"create schema if not exists {schema}")
        made.append(schema)
    for name, columns in names.items():
        create_table(spark, name, columns)
    return made


def drop_schemas(spark: SparkSession, schemas: list[str]) -> None:
    """Drop schemas with what is in them."""
    spark.sql("use default")
    for schema in schemas:
        spark.sql(f"drop schema if exists {schema} cascade")


def create_table(spark: SparkSession, name: str, columns: list[tuple[str, str]]) -> None:
    """Create one empty table."""
    listed = ", ".join(f"`{c}` {kind}" for c, kind in columns)
    spark.sql(f"create table {name.replace('.', '.`')}` ({listed}) using parquet")


# -- corpora -------------------------------------------------------------------------------------


def tpc(name: str) -> Corpus | None:
    """TPC-H or TPC-DS in Spark SQL, or None where `make_tpc.py` has not run."""
    import sqlglot

    made = load(name)
    if made is None:
        return None
    tables: Tables = {
        table: [(c, "string" if kind == "VARCHAR" else kind) for c, kind in columns]
        for table, columns in made["tables"].items()
    }
    cases = [
        Case(f"{name} {number}", sqlglot.transpile(sql, read="duckdb", write="spark")[0])
        for number, sql in made["queries"].items()
    ]
    return Corpus(name, f"oracle_{name}", tables, cases)


# Catalogs written on Spark name types as printSchema does, and nested ones only by their kind.
_CATALOG_TYPES: Final = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_NESTED: Final = frozenset({"array", "struct", "map"})


def dbt_target(folder: Path) -> Corpus:
    """Every compiled query of a dbt project (its own models, tests), over the tables they stand on.

    A node's columns come from its declared types or the catalog; a model whose types are not told
    there gets those of its own query once that was analysed.
    """
    project = read_project(folder)
    tables: Tables = {}
    cases: list[Case] = []
    ephemeral: dict[str, str] = {}
    done: set[str] = set()

    def visit(unique_id: str) -> None:
        if unique_id in done or unique_id not in project.nodes:
            return
        done.add(unique_id)
        for parent in project.parents.get(unique_id, []):
            visit(parent)
        node = project.nodes[unique_id]
        relation = (node.relation_name or "").replace("`", "").lower() or None
        if relation is not None:
            declared = {c.name.lower(): c.data_type for c in node.columns.values()}
            columns = [
                (
                    c.name or "",
                    declared.get((c.name or "").lower())
                    or _CATALOG_TYPES.get(c.type or "", c.type or ""),
                )
                for c in project.catalog.get(unique_id, [])
            ]
            if columns and not any(kind in _NESTED for _, kind in columns):
                tables[relation] = columns
        if node.is_ephemeral:
            ephemeral[node.name] = node.compiled_code or ""
        if node.package_name != project.name:
            return  # an installed package reads tables of its own
        if node.compiled_code and node.resource_type in ("model", "test", "snapshot", "analysis"):
            creates = relation if node.resource_type == "model" else None
            cases.append(Case(unique_id, node.compiled_code, creates))

    for unique_id in project.nodes:
        visit(unique_id)
    return Corpus("integration_tests", "oracle_dbt", tables, cases, ephemeral)


def fixtures() -> Corpus:
    """The construct fixtures that Spark's analyser can judge."""
    cases = [
        Case(f.id, f.sql)
        for f in read_fixtures()
        if f.dialect in ("spark", "databricks")
        and not {"spark", "opaque", "missing"} & {*f.pragmas}
    ]
    return Corpus("fixtures", "oracle_fixtures", read_tables(), cases)


def main(names: list[str]) -> int:
    """Print the agreement of the corpora named."""
    from pyspark.sql import SparkSession

    from dbt_ripple.spark.session import local_environment

    with tempfile.TemporaryDirectory() as folder:
        local_environment(Path(folder))
        spark = SparkSession.builder.config(
            "spark.sql.catalogImplementation", "in-memory"
        ).getOrCreate()
        bad = 0
        for corpus in corpora(names):
            report = agreement(spark, corpus)
            print(report)
            for disagreement in report.disagreements:
                print(disagreement)
            bad += len(report.disagreements)
        spark.stop()
    return 1 if bad else 0


def corpora(names: list[str]) -> Iterator[Corpus]:
    for name in names:
        if name in ("tpch", "tpcds"):
            corpus = tpc(name)
            if corpus is None:
                raise SystemExit(f"{name}: run make_tpc.py first")
            yield corpus
        elif name == "fixtures":
            yield fixtures()
        else:
            yield dbt_target(Path(name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["tpch", "tpcds"]))
