"""What must hold of every query, whatever it says: the fixtures, rewritten and misread."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
import sqlglot
from lineage_fixtures import Fixture, read_fixtures, read_tables
from linked_tables import table_relation
from sqlglot import exp

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import ROWS, Column, Relation

TABLES = {name: [c for c, _ in columns] for name, columns in read_tables().items()}
FIXTURES = [f for f in read_fixtures() if not {"opaque", "missing"} & set(f.pragmas)]
Schema = Callable[[str], list[str] | None]


class _Open:
    """Columns of a table nobody lists."""

    def __init__(self, table: str, leaf: bytes) -> None:
        self.table = table
        self.leaf = leaf

    def get(self, key: str, name: str) -> Column:
        return digest(self.leaf, key.encode()), {(self.table, key): 1}

    def fp(self) -> bytes:
        return digest(self.leaf, b"*")

    def whole(self) -> dict[tuple[str, str], int]:
        return {(self.table, ROWS): 2}


def linked(sql: str, dialect: str, schema: Schema = TABLES.get) -> Linked | str:
    """The query against the fixtures' tables as `schema` knows them, or why it is opaque."""

    def table(key: str, _: str) -> Relation:
        name = key.split(".")[-1].strip('"')
        rest = [_Open(name, digest(b"leaf", name.encode()))]
        columns = schema(name)
        if columns is None:
            return table_relation(name, [], unlisted=rest)
        return table_relation(name, columns, unresolved=rest)

    lowered = lower(sql, dialect)
    return str(lowered.reason) if lowered.rel is None else link(lowered, table, dialect)


def outcome(result: Linked | str) -> object:
    """All there is to see of a flow."""
    if isinstance(result, str):
        return result
    r = result.relation
    return [
        [(c.key, c.fp, c.deps) for c in r.columns],
        r.rows.fp,
        r.rows.deps,
        result.missing,
    ]


def fingerprints(result: Linked | str) -> object:
    """The fingerprints of a flow, names aside."""
    if isinstance(result, str):
        return result
    return result.relation.fps, result.relation.rows.fp


def test_laying_a_query_out_anew_changes_nothing() -> None:
    """The same tokens with other white space and comments between them."""
    dice = random.Random(20261121)
    tried = 0
    for fixture in FIXTURES:
        dialect = sqlglot.Dialect.get_or_raise(fixture.dialect)
        tokens = dialect.tokenize(fixture.sql)
        pieces = [fixture.sql[t.start : t.end + 1] for t in tokens]
        # A hint is a comment that counts: left alone.
        if any("/*+" in p for p in pieces) or "/*+" in fixture.sql:
            continue
        if any(t.start <= b.end for b, t in pairwise(tokens)):
            continue  # one word that sqlglot reads as several tokens (0.5d)
        gaps = ["\n", "  ", "\n\t", " /* note */ ", " -- note\n"]
        twin = pieces[0]
        for before, token, piece in zip(tokens, tokens[1:], pieces[1:], strict=False):
            apart = token.start > before.end + 1
            twin += (dice.choice(gaps) if apart else "") + piece
        assert outcome(linked(twin, fixture.dialect)) == outcome(
            linked(fixture.sql, fixture.dialect)
        ), f"{fixture.id}\n{twin}"
        tried += 1
    assert tried > 0.9 * len(FIXTURES)


def test_the_sqlglot_formatted_twin_has_the_same_flow() -> None:
    same_tree, tried = 0, 0
    for fixture in FIXTURES:
        if "|>" in fixture.sql:
            continue  # sqlglot makes one query of pipe operators, whatever their order
        try:
            tree = sqlglot.parse_one(fixture.sql, read=fixture.dialect)
            twin = tree.sql(dialect=fixture.dialect, pretty=True)
            again = sqlglot.parse_one(twin, read=fixture.dialect)
        except sqlglot.errors.SqlglotError:
            continue
        tried += 1
        # Where sqlglot's own round trip is another query, the twin is no twin.
        if again != tree:
            continue
        same_tree += 1
        ours, theirs = linked(fixture.sql, fixture.dialect), linked(twin, fixture.dialect)
        assert fingerprints(ours) == fingerprints(theirs), f"{fixture.id}\n{twin}"
    assert same_tree > 0.9 * tried > 0.8 * len(FIXTURES)


def _wrapped(sql: str, dice: random.Random) -> str:
    name = f"w{dice.randrange(1000)}"
    return dice.choice(
        [
            f"select * from (\n{sql}\n) as {name}",
            f"with {name} as (\n{sql}\n) select * from {name}",
            f"with {name} as (\n{sql}\n), {name}x as (select * from {name}) select {name}x.* from {name}x",
            f"select {name}.* from (select * from (\n{sql}\n) as inner_{name}) as {name}",
        ]
    )


def test_another_layer_of_select_star_changes_no_fingerprint() -> None:
    dice = random.Random(7)
    tried = 0
    for fixture in FIXTURES:
        if not fixture.sql.lstrip("( \n").lower().startswith("select") or fixture.dialect == "tsql":
            continue
        plain = linked(fixture.sql, fixture.dialect)
        if isinstance(plain, str) or plain.relation.unlisted or plain.relation.duplicates:
            continue
        keys = plain.relation.keys
        if len(set(keys)) != len(keys) or re.search(r"\bfor\b.*\bupdate\b", fixture.sql):
            continue
        wrapped = _wrapped(fixture.sql, dice)
        assert fingerprints(linked(wrapped, fixture.dialect)) == fingerprints(plain), (
            f"{fixture.id}\n{wrapped}"
        )
        tried += 1
    assert tried > 200


def _renamed_ctes(tree: exp.Expression) -> exp.Expression:
    """Every CTE under another name, its readers with it."""
    ctes = [cte for cte in tree.find_all(exp.CTE) if not cte.args.get("scalar")]
    renamed = {cte.alias.lower(): f"renamed_{cte.alias}" for cte in ctes}
    qualified = {
        t.name.lower()
        for t in tree.find_all(exp.Table)
        if not t.args.get("db") and not t.alias and t.name.lower() in renamed
    }
    for cte in ctes:
        cte.args["alias"].set("this", exp.to_identifier(renamed[cte.alias.lower()]))
    for table in tree.find_all(exp.Table):
        if not table.args.get("db") and table.name.lower() in renamed:
            table.set("this", exp.to_identifier(renamed[table.name.lower()]))
    for column in tree.find_all(exp.Column):
        if column.table.lower() in qualified and not column.args.get("db"):
            column.set("table", exp.to_identifier(renamed[column.table.lower()]))
    return tree


def _renamed_aliases(tree: exp.Expression) -> exp.Expression:
    """Every alias of a relation under another name, where the name is used for nothing else."""
    aliases = {
        a.name.lower()
        for a in tree.find_all(exp.TableAlias)
        if a.this is not None and not isinstance(a.parent, exp.CTE)
    }
    names = {t.name.lower() for t in tree.find_all(exp.Table)} | {
        c.name.lower() for c in tree.find_all(exp.Column)
    }
    aliases -= names
    for alias in tree.find_all(exp.TableAlias):
        if alias.name.lower() in aliases:
            alias.set("this", exp.to_identifier(f"other_{alias.name}"))
    for column in tree.find_all(exp.Column):
        first = column.parts[0]
        if len(column.parts) > 1 and first.name.lower() in aliases:
            first.set("this", f"other_{first.name}")
    return tree


@pytest.mark.parametrize("rewrite", [_renamed_ctes, _renamed_aliases], ids=lambda f: f.__name__)
def test_names_inside_a_query_are_not_part_of_it(
    rewrite: Callable[[exp.Expression], exp.Expression],
) -> None:
    tried = 0
    for fixture in FIXTURES:
        if "/*+" in fixture.sql or "|>" in fixture.sql or "__dbt__cte__" in fixture.sql:
            continue  # a hint may name an alias, pipes become CTEs of sqlglot's own, dbt's CTEs are nodes
        if re.search(rf"\b({'|'.join(TABLES)}) as \(", fixture.sql):
            continue  # a CTE with a table's name: inside it the name is the table
        try:
            tree = sqlglot.parse_one(fixture.sql, read=fixture.dialect)
            plain = tree.sql(dialect=fixture.dialect)
            other = rewrite(tree.copy()).sql(dialect=fixture.dialect)
        except sqlglot.errors.SqlglotError:
            continue
        if other == plain or sqlglot.parse_one(plain, read=fixture.dialect) != tree:
            continue
        assert fingerprints(linked(other, fixture.dialect)) == fingerprints(
            linked(plain, fixture.dialect)
        ), f"{fixture.id}\n{other}"
        tried += 1
    assert tried > 20


def _claims(result: Linked | str, fixture: Fixture) -> dict[str, set[tuple[str, str]]]:
    """What each output of the fixture, and the rows, may depend on as far as we say."""
    assert not isinstance(result, str), f"{fixture.id}: {result}"
    relation = result.relation
    claims = {ROWS: set(relation.rows.deps)}
    for name, _ in fixture.outputs:
        if name == "?":
            continue
        column = relation.get(name.lower(), name)
        matching = [column] if column is not None else []
        if not matching:  # as for a reader of this query: what the schema denies is not lost
            matching = [
                c for g in relation.unresolved if (c := g.get(name.lower(), name)) is not None
            ]
        claims[name] = {d for c in matching for d in c[1]}
    return claims


def test_a_missing_or_wrong_schema_never_claims_less() -> None:
    dice = random.Random(42)

    def short(name: str) -> list[str] | None:
        return [c for c in TABLES.get(name, []) if dice.random() < 0.5]

    schemas: dict[str, Schema] = {
        "missing": lambda _: None,
        "wrong": short,
        "another table's": lambda name: ["something", "else"] if name in TABLES else None,
    }
    tried = 0
    for fixture in FIXTURES:
        right = linked(fixture.sql, fixture.dialect)
        if isinstance(right, str) or right.relation.unlisted:
            continue
        names = [n for n, _ in fixture.outputs]
        if len(set(names)) != len(names):
            continue
        truth = _claims(right, fixture)
        whole_row = re.search(r"whole row|as one value", fixture.name) or re.search(
            r"(?<!count)\((\w+\.)?\*", fixture.sql
        )
        for what, schema in schemas.items():
            if whole_row and schema(next(iter(TABLES))) is not None:
                continue  # the columns of a row as one value are what the schema says
            seen = linked(fixture.sql, fixture.dialect, schema)
            if what != "missing" and not isinstance(seen, str) and not seen.missing:
                continue  # valid under that schema, it is another query
            claims = _claims(seen, fixture)
            for name, deps in truth.items():
                whole = {t for t, c in claims[name] if c == ROWS}  # all of a table, columns unknown
                if name == ROWS and "*" not in fixture.sql:
                    whole = set()
                lost = {d for d in deps - claims[name] if d[0] not in whole}
                # A name that the schema denies may mean something else that has it (an alias, a
                # generator's column); only where nothing has it must it still lead to the table.
                explained = what != "missing" and claims[name]
                if not isinstance(seen, str) and seen.unknown:
                    continue  # a NATURAL join of unknown columns, say: opaque, and it says so
                assert not lost or explained, (
                    f"{fixture.id} ({what} schema): {name} lost {lost}\n{fixture.sql}"
                )
        tried += 1
    assert tried > 300


NASTY = {
    "not": "select " + "not " * 10_000 + "a from t",
    "minus": "select " + "- " * 10_000 + "a from t",
    "parentheses": "select " + "(" * 100_000 + "a" + ")" * 100_000 + " from t",
    "subqueries": "select * from " + "(select * from " * 1_000 + "t" + ")" * 1_000,
    "cases": "select " + "Case when a then " * 1_000 + "1" + " end" * 1_000 + " from t",
    "types": "select cast(a as " + "array<" * 1_000 + "int" + ">" * 1_000 + ") from t",
    "dots": "select a" + ".b" * 3_000 + " from t",
    "brackets": "select a" + "[0]" * 3_000 + " from t",
    "garbage": "}{ from select ((",
    "bytes": "\x00\x01\x02",
    "nothing": "",
    "prose": "this is not a query at all, it is a sentence",
    "two": "select 1; select 2",
    "half": "select a, from where",
}


@pytest.mark.parametrize("name", NASTY)
def test_what_cannot_be_followed_is_opaque_with_a_reason(name: str) -> None:
    lowered = lower(NASTY[name], "spark")
    assert lowered.rel is None
    assert lowered.reason
    assert "\n" not in str(lowered.reason)


LARGE = {
    "in": "select a from t where a in (" + ",".join(map(str, range(10_000))) + ")",
    "or": "select a from t where " + " or ".join(f"a = {i}" for i in range(10_000)),
    "plus": "select " + " + ".join(["a"] * 10_000) + " as b from t",
    "concat": "select " + " || ".join(["k"] * 5_000) + " as b from t",
    "case": "select case "
    + " ".join(f"when a = {i} then {i}" for i in range(5_000))
    + " end as b from t",
    "union": " union all ".join(["select a from t"] * 2_000),
    "ctes": "with c0 as (select * from t), "
    + ", ".join(f"c{i} as (select * from c{i - 1})" for i in range(1, 1_000))
    + " select a from c999",
    "one line": "select "
    + ", ".join(f"'{'x' * 1_000}' as c{i}" for i in range(1_000))
    + ", a from t",
    "values": "select col1 as a from values " + ",".join(f"({i}, {i})" for i in range(20_000)),
    "joins": "select t.a from t "
    + " ".join(f"join u u{i} on t.id = u{i}.id" for i in range(1_000)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_is_not_deep(name: str) -> None:
    result = linked(LARGE[name], "spark")
    assert isinstance(result, Linked)
    assert result.missing == []
    assert result.relation.names
