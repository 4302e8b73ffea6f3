"""How much of the public SQL of each dialect is followed, and what becomes of the rest.

    python python/bench/corpus.py CLONES [--dialect NAME] [--show CODE] [--limit 20]

CLONES is a folder with clones of sqlfluff and sqlglot (`git clone https://github.com/sqlfluff/sqlfluff`
and `.../tobymao/sqlglot`), bare or not. Of the first, the queries of `test/fixtures/dialects` are read,
of the second the SQL in the calls of `validate_identity` and `validate_all` of `tests/dialects`. Nothing
of them is kept here.

Each SELECT becomes the only model of a project, whose sources are the relations that it names, with
columns that nothing lists. Of each dialect it is counted what the analysis says of that model:

* *followed*: it has lineage. A `*` over columns that are not listed counts, as does what else only
  the catalog of a warehouse can tell;
* *opaque*: it counts as changed with every edit of it and of its parents, for a reason of docs/reasons.md;
* *not parsed*: the same, because sqlglot does not read it;
* *broken*: the analysis says that an engine would refuse it. There must be none.

A query that names columns and reads no relation, as examples of a parser's tests do, gets a FROM; where
that does not help (its FROM has only functions of such columns) it is left out. So is what the engine
itself refuses: half a statement, a variable of SQL*Plus, an operator of PL/SQL (`**`, `MOD`).
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import TokenType

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.project import DependsOn, Metadata
from dbt_ripple.flow.lower import lower
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.reasons import Code

DIALECTS: Final = {
    "duckdb": ("duckdb", "duckdb"),
    "spark": ("spark", "sparksql"),
    "databricks": ("databricks", "databricks"),
    "bigquery": ("bigquery", "bigquery"),
    "snowflake": ("snowflake", "snowflake"),
    "redshift": ("redshift", "redshift"),
    "postgres": ("postgres", "postgres"),
    "trino": ("trino", "trino"),
    "athena": ("athena", "athena"),
    "clickhouse": ("clickhouse", "clickhouse"),
    "tsql": ("sqlserver", "tsql"),
    "oracle": ("oracle", "oracle"),
    "mysql": ("mysql", "mysql"),
    "sqlite": ("sqlite", "sqlite"),
}
"""sqlglot's name of each dialect, with dbt's adapter and sqlfluff's name."""
_ALSO: Final = {"athena": ("athena", "presto"), "trino": ("trino", "presto")}
"""Whose SQL sqlglot tests under another name, too."""
_BEGINS: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
_NO_QUERY: Final = frozenset("CREATE DELETE DROP GO INSERT INTO MERGE RETURN UPDATE".split())
"""Words of statements that write, or of several statements without a semicolon between them."""
_REFUSED: Final = {
    "oracle": re.compile(r"&\w|\*\*|\bMOD \(?\w|\bEND (?:CASE|my_case) AS\b"),
    "tsql": re.compile(r"(?i)\bUNION\s+ALL\s*$|\bDATEPART\(\w+,[^,()]*,"),
}
"""What the engine itself refuses: variables of SQL*Plus and operators of PL/SQL; halves of a statement."""
_ASSIGNS: Final = re.compile(r"(?i)select\s+@\w+\s*[-+*/%]?=")
_UNKNOWN_NAMES: Final = frozenset({Code.CANNOT_FIND, Code.MAY_NOT_BUILD})
_NEEDS_CATALOG: Final = frozenset(
    {
        Code.STAR_UNKNOWN,
        Code.PIVOT_UNKNOWN,
        Code.SET_OPERATION_UNKNOWN,
        Code.NATURAL_JOIN_UNKNOWN,
        Code.USING_AMBIGUOUS,
    }
)
"""Reasons that a catalog takes away."""
_NEXT_STATEMENT: Final = re.compile(
    r"(?im)^\s*GO\s*;?\s*$|\n\s*\n(?=\s*(?:--[^\n]*\n\s*)*(?:SELECT|WITH|DECLARE|CREATE)\b)"
)


def files(repository: Path, under: str, ending: str) -> Iterator[tuple[str, str]]:
    """Names and texts of files of a clone's last commit."""

    def git(*command: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(repository), *command], capture_output=True, check=True
        )
        return done.stdout.decode("utf-8", "replace")

    for name in git("ls-tree", "-r", "--name-only", "HEAD", under).splitlines():
        if name.endswith(ending):
            yield name, git("show", f"HEAD:{name}")


def clone_of(clones: Path, name: str) -> Path:
    """The clone of a repository in a folder of clones."""
    for found in sorted(clones.iterdir()):
        if found.name == name or found.name.endswith("+" + name):
            return found / "repo" if (found / "repo").is_dir() else found
    sys.exit(f"{clones} has no clone of {name}: git clone it there")


def queries_of(text: str, dialect: str) -> Iterator[str]:
    """The queries among the statements of a text."""
    tokenize = Dialect.get_or_raise(dialect).tokenize
    if re.match(r"(?is)\s*with\s+function\b", text):  # the statements of its body are none
        yield text.strip()
        return
    for part in _NEXT_STATEMENT.split(text) if dialect == "tsql" else [text]:
        try:
            tokens = tokenize(part)
        except Exception:
            statements = re.split(r";\s*\n", part)
        else:
            ends = [t.start for t in tokens if t.token_type is TokenType.SEMICOLON]
            bounds = [0, *(end + 1 for end in ends)]
            statements = [part[a:b] for a, b in zip(bounds, [*ends, len(part)], strict=True)]
        for statement in statements:
            if _is_query(statement, tokenize, dialect):
                yield statement.strip()


def _is_query(statement: str, tokenize: Any, dialect: str) -> bool:
    try:
        words = [t.text.upper() for t in tokenize(statement)]
    except Exception:
        words = re.findall(r"\w+|\(", re.sub(r"--.*|/\*.*?\*/", "", statement).upper())
    first = next((word for word in words if word != "("), "")
    if dialect == "tsql" and _ASSIGNS.search(statement):
        return False
    if dialect in _REFUSED and _REFUSED[dialect].search(statement.strip()):
        return False
    if words.count("(") > words.count(")"):  # cut by an empty line of a test
        return False
    return first in _BEGINS and not _NO_QUERY.intersection(words)


def corpus(clones: Path, dialect: str) -> list[str]:
    """The queries of a dialect, each once."""
    found: dict[str, None] = {}
    sqlfluff = clone_of(clones, "sqlfluff")
    for _, text in files(sqlfluff, f"test/fixtures/dialects/{DIALECTS[dialect][1]}", ".sql"):
        found.update(dict.fromkeys(queries_of(text, dialect)))
    names = _ALSO.get(dialect, (dialect,))
    for _, text in files(clone_of(clones, "sqlglot"), "tests/dialects", ".py"):
        for of, sql in _tested(text):
            if of in names:
                found.update(dict.fromkeys(queries_of(sql, dialect)))
    return list(found)


def _tested(text: str) -> Iterator[tuple[str, str]]:
    """The SQL in the calls of sqlglot's tests, each with its dialect."""

    def string(node: Any) -> str:
        known = isinstance(node, ast.Constant) and isinstance(node.value, str)
        return node.value if known else ""

    for of_class in [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ClassDef)]:
        own = next(
            (
                string(n.value)
                for n in of_class.body
                if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "dialect"
            ),
            "",
        )
        for call in [n for n in ast.walk(of_class) if isinstance(n, ast.Call)]:
            if getattr(call.func, "attr", "") not in ("validate_identity", "validate_all"):
                continue
            yield from ((own, string(argument)) for argument in call.args)
            for keyword in call.keywords:
                if keyword.arg in ("read", "write") and isinstance(keyword.value, ast.Dict):
                    pairs = zip(keyword.value.keys, keyword.value.values, strict=True)
                    yield from ((string(key), string(value)) for key, value in pairs)


def _node(unique_id: str, relation: str | None, sql: str | None, parents: list[str]) -> Node:
    kind, *_, name = unique_id.split(".", 2)
    parts = relation.split(".") if relation else []
    return Node(
        unique_id=unique_id,
        name=name,
        resource_type=kind,
        package_name="p",
        fqn=["p", name],
        schema=parts[-2] if len(parts) > 1 else "s",
        database=parts[-3] if len(parts) > 2 else None,
        identifier=parts[-1] if parts else None,
        relation_name=relation,
        compiled_code=sql,
        raw_code=sql or "",
        config={"materialized": "table"},
        unrendered_config={},
        columns={},
        depends_on=DependsOn(nodes=parents, macros=[]),
    )


def analysed(sql: str, dialect: str) -> Any:
    """What the analysis says of a query as the only model of a project."""
    relations = [key for key in lower(sql, dialect).tables if key]
    sources = {f"source.p.{i}": key for i, key in enumerate(relations)}
    model = "model.p.query"
    nodes = {u: _node(u, key, None, []) for u, key in sources.items()}
    nodes[model] = _node(model, None, sql, [*sources])
    project = Project(
        target_path="target",
        metadata=Metadata(
            adapter_type=DIALECTS[dialect][0],
            project_name="p",
            dbt_version="1.11.0",
            generated_at=datetime(2026, 1, 1, tzinfo=UTC),
        ),
        nodes=nodes,
        parents={model: [*sources]} | {u: [] for u in sources},
        children={model: []} | {u: [model] for u in sources},
        macros={},
        catalog={},
    )
    return analyse(project, tests=False).nodes[model]


@dataclass
class Counts:
    """What became of the queries of a dialect."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)


def outcome_of(node: Any) -> tuple[str, str]:
    """What became of a query, and the reason in short."""
    reason = node.reason
    code = reason.code if reason is not None else None
    if node.status == "broken":
        return "broken", str(reason)
    if node.status == "analysed" or code in _NEEDS_CATALOG:
        return "followed", ""
    if code in (Code.CANNOT_PARSE, Code.DEFECT):
        return "not parsed", str(reason)
    short = str(reason) if code is not Code.WORDS_DROPPED else "words that sqlglot drops"
    return "opaque", short


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("--dialect", action="append", choices=[*DIALECTS])
    parser.add_argument("--show", help="print the queries whose outcome or reason contains this")
    parser.add_argument("--limit", type=int, default=20, help="of the queries to print")
    options = parser.parse_args()
    columns = ("followed", "opaque", "not parsed", "broken")
    print(f"{'dialect':<12}{'queries':>8}" + "".join(f"{c:>12}" for c in columns) + "   said")
    totals: Counter[str] = Counter()
    for dialect in options.dialect or DIALECTS:
        counts = Counts()
        shown = 0
        for sql in corpus(options.clones, dialect):
            node = analysed(sql, dialect)
            unknown = node.reason is not None and node.reason.code in _UNKNOWN_NAMES
            if unknown and not lower(sql, dialect).tables:
                node = analysed(f"{sql}\nFROM relation_1", dialect)
                if node.status != "analysed":
                    continue
            outcome, reason = outcome_of(node)
            counts.outcomes[outcome] += 1
            if reason:
                counts.reasons[f"{outcome}: {reason}"] += 1
            if options.show and options.show in f"{outcome}: {node.reason}":
                shown += 1
                if shown <= options.limit:
                    print(f"-- {outcome}: {node.reason}\n{sql}\n")
        totals += counts.outcomes
        print(_row(dialect, counts.outcomes, columns))
        if options.dialect and not options.show:
            for reason, times in counts.reasons.most_common():
                print(f"    {times:>5}  {reason}")
    print(_row("all", totals, columns))


def _row(name: str, outcomes: Counter[str], columns: tuple[str, ...]) -> str:
    queries = outcomes.total()
    said = outcomes["followed"] + outcomes["opaque"]
    share = 100 * said / max(1, queries)
    figures = "".join(f"{outcomes[c]:>12}" for c in columns)
    return f"{name:<12}{queries:>8}{figures}   {share:.1f}%"


if __name__ == "__main__":
    main()
