"""SQL is read in one room: what is repaired there, that all who read see it, and that nobody else reads."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from typing import Final

import pytest
import sqlglot
from sqlglot.errors import SqlglotError

import dbt_ripple
from dbt_ripple.flow.definitions import computed
from dbt_ripple.flow.determinism import nondeterminism
from dbt_ripple.flow.hook_statements import deleted_rows
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.query_text import (
    is_plainly_written,
    names_in,
    same_but_for_names,
    same_words,
    text_of_query,
)
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import (
    UNREAD,
    parse_followed,
    parse_statement,
    parse_statements,
    statement_texts,
    tokenize,
    tokens_as_they_stand,
    without_values,
)
from dbt_ripple.flow.reading.token_repairs import REPAIRS
from dbt_ripple.flow.statements import statements
from dbt_ripple.flow.syntax_errors import syntax_error

PACKAGE: Final = Path(dbt_ripple.__file__).parent
ROOM: Final = PACKAGE / "flow" / "reading"


def texts(sql: str, dialect: str) -> list[str]:
    return [token.text for token in tokenize(sql, dialect)]


REPAIRED: Final = {
    "a text with doubled quotes": ("spark", ["select", "it'\u2060's"]),
    "a number that begins with a point": ("duckdb", ["select", ".5"]),
    "the empty hexadecimal literal": ("trino", ["select", "0x"]),
    "IN of a list in brackets": (
        "duckdb",
        ["select", "a", "in", "list_value", "(", "1", ",", "null", ")"],
    ),
    "OPENROWSET or OPENXML with a schema": (
        "tsql",
        ["select", "*", "from", "openxml", "(", "@", "d", ",", "/r", ",", "(id int)", ")", "x"],
    ),
    "an operator of several words or signs": (
        "oracle",
        ["select", "1", "from", "t", "where", "a", "<=", "b"],
    ),
    "a column called `values` or `from`": (
        "spark",
        ["select", "from", ",", "f", "(", "values", ")", "from", "t"],
    ),
    "LATERAL VIEW without AS": (
        "spark",
        "select x from t lateral view inline ( f ( a ) ) v AS x , y where x > 1".split(),
    ),
}
"""The dialect in which an example of the table is tried, and its tokens."""

NEAR_MISSES: Final = [
    ("duckdb", "select 'it''s'"),
    ("spark", "select 'it' 's'"),
    ("spark", "select 'it'\"s\""),
    ("duckdb", "select t.5, x[1].5 from t"),
    ("trino", 'select "0x", 0xff'),
    ("duckdb", "select a in (1, null), b[1], [x in [1] for x in l]"),
    ("duckdb", "select a in [x for x in l]"),
    ("postgres", "select a < = b"),
    ("oracle", 'select a "MULTISET" from t'),
    ("tsql", "select * from openxml(@d, '/r') x"),
    ("postgres", "select * from openxml(a, '/r') with (id int) x"),
    ("duckdb", "select values from t"),
    ("spark", "select a from values (1) as t(a)"),
    ("spark", "select x from t lateral view inline(f(a)) v as x, y"),
    ("spark", "select x from t lateral view explode(a) v where x > 1"),
]


@pytest.mark.parametrize("repair", REPAIRS, ids=lambda repair: repair.construct)
def test_tokens_say_what_the_engine_reads(repair: object) -> None:
    dialect, expected = REPAIRED[repair.construct]
    plain = tokens_as_they_stand(repair.example, dialect)
    made = tokenize(repair.example, dialect)
    assert [token.text for token in made] == expected
    assert [(t.token_type, t.text) for t in plain] != [(t.token_type, t.text) for t in made]
    assert not repair.dialects or dialect in repair.dialects


@pytest.mark.parametrize(("dialect", "sql"), NEAR_MISSES)
def test_tokens_that_say_it_already_stay(dialect: str, sql: str) -> None:
    # The one list of the row with a comprehension in it is repaired, and only that.
    plain = [(t.token_type, t.text) for t in tokens_as_they_stand(sql, dialect)]
    made = [(t.token_type, t.text) for t in tokenize(sql, dialect)]
    changed = [text for text in made if text not in plain]
    assert changed == ([] if "x in [1]" not in sql else [(changed[0][0], "list_value")])


LIST, VALUES = "not (id in [1, 3, null])", "not (id in (1, 3, null))"


def test_a_list_is_told_from_values_by_all_who_read() -> None:
    """Not one function that reads SQL may take the one text for the other."""
    queries = [
        f"select {where} as kept, case when {where} then 1 end as x from t"
        for where in (LIST, VALUES)
    ]
    deletes = [
        deleted_rows(f"delete from mine where {where}", "mine", "duckdb")
        for where in (LIST, VALUES)
    ]
    assert deletes[0] is not None
    assert deletes[0] != deletes[1]
    for read in (
        lambda sql: str(lower(sql, "duckdb").rel),
        lambda sql: text_of_query(sql, "duckdb").definitions,
        lambda sql: computed(sql, "duckdb"),
        lambda sql: written(parse_statement(sql, "duckdb"), "duckdb"),
        lambda sql: [written(tree, "duckdb") for tree in parse_statements(sql, "duckdb")],
        lambda sql: texts(sql, "duckdb"),
    ):
        assert read(queries[0]) != read(queries[1])
    assert not same_words(*queries, "duckdb")
    assert not same_but_for_names(*queries, "duckdb")


def test_what_is_written_of_a_tree_is_read_as_that_tree() -> None:
    for sql in (f"select a from t where {LIST}", "select l[2], l[i], .5 from t"):
        again = written(parse_statement(sql, "duckdb"), "duckdb")
        assert written(parse_statement(again, "duckdb"), "duckdb") == again
        assert is_plainly_written(again, "duckdb")


def test_who_asks_what_may_change_sees_the_column_behind_an_arrow() -> None:
    """`f(b -> 'k')` reads b; to sqlglot it is a lambda, and b its parameter."""
    tree = parse_statement("select max(b -> 'k') as x from t", "postgres")
    assert [column.name for column in tree.find_all(sqlglot.exp.Column)] == ["b"]
    lambdas = parse_statement("select list_transform(l, b -> b + 1) as x from t", "duckdb")
    assert [column.name for column in lambdas.find_all(sqlglot.exp.Column)] == ["l"]


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", "select n ! in (1) as x from t"),
        ("duckdb", "select a or b -> 'k' as x from t"),
        ("spark", f"select {'(' * 201}1{')' * 201}"),
        ("spark", "select 1; select 2"),
        ("spark", "select from where"),
        ("spark", "select 'a"),
        ("spark", ""),
    ],
)
def test_what_is_not_read_is_told_to_all(dialect: str, sql: str) -> None:
    with pytest.raises(UNREAD):
        parse_statement(sql, dialect)
    assert parse_followed(sql, dialect) is None
    assert lower(sql, dialect).rel is None
    assert nondeterminism(sql, dialect, ()) is not None
    assert computed(sql, dialect) == {}
    assert text_of_query(sql, dialect).columns == {}


def test_a_query_like_those_that_are_refused_is_read() -> None:
    for dialect, sql in (
        ("spark", "select ! a as x from t"),
        ("duckdb", "select (a or b) -> 'k' as x from t"),
        ("duckdb", "select n != 1 as x, n !~ 'a' as y from t"),
        ("spark", f"select {'(' * 199}1{')' * 199}"),
    ):
        assert parse_followed(sql, dialect) is not None


def test_pipes_are_read_in_the_order_in_which_they_stand() -> None:
    sql = "from t |> limit 1 |> where a > 1"
    where_first = "from t |> where a > 1 |> limit 1"
    assert written(parse_statement(sql, "duckdb"), "duckdb") != written(
        parse_statement(where_first, "duckdb"), "duckdb"
    )


SCRIPT = "select 1 as \"it's; -- \"; /* ; */ delete from a where b = 'x;y' -- the last; one\n;"


def test_a_script_is_divided_where_a_statement_ends() -> None:
    parts = [text.sql for text in statement_texts(SCRIPT, "duckdb")]
    assert parts == [
        'select 1 as "it\'s; -- "',
        "/* ; */ delete from a where b = 'x;y' -- the last; one",
    ]
    read = statements(SCRIPT, "duckdb")
    assert [each.sql for each in read] == parts
    assert statement_texts("-- nothing\n; ;", "duckdb") == []


def test_values_are_hidden_piece_by_piece() -> None:
    """What is shown of a text is of the text itself: a repaired token may stand for a longer piece."""
    sql = "select * from openxml(@d, '/secret') with (id int '@secret') x where a < = 'secret'"
    assert without_values(sql, "tsql") == (
        "select * from openxml(@d, '…') with (id int '…') x where a < = '…'"
    )
    view = "select x from t lateral view inline(f(a)) v x, y"
    assert without_values(view, "spark") == view


def test_a_keyword_that_is_a_name_is_one_to_who_asks_for_mistakes() -> None:
    assert syntax_error("select values from t where values = 1", "spark", unread=True) is None
    assert "values" in names_in("select f(values) from t", "spark")


def test_two_threads_read_two_dialects_at_once() -> None:
    """Nothing that the one thread sets up is seen by the other, and sqlglot's own functions stay as they are."""
    queries = {
        "spark": "select cast(a as varchar(3)) as x, cast(b as char(2)) as y, l[{0}] as z from t{0}",
        "duckdb": "select a::varchar(3) as x, a in [{0}, null] as y, l[{0}] as z, uuid() from t{0}",
    }
    own = sqlglot.parse_one, sqlglot.parse, sqlglot.tokenize
    expected = {d: [str(lower(q.format(i), d).rel) for i in range(40)] for d, q in queries.items()}
    plain = sqlglot.parse_one("select cast(a as char), l[1] from t", dialect="spark").sql("spark")
    found: dict[str, list[str]] = {}
    others: list[bool] = []

    def work(dialect: str) -> None:
        found[dialect] = []
        for i in range(40):
            found[dialect].append(str(lower(queries[dialect].format(i), dialect).rel))
            others.append((sqlglot.parse_one, sqlglot.parse, sqlglot.tokenize) == own)
            tree = sqlglot.parse_one("select cast(a as char), l[1] from t", dialect="spark")
            others.append(tree.sql("spark") == plain)

    threads = [threading.Thread(target=work, args=(dialect,)) for dialect in queries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
    assert len(others) == 160
    assert all(others)


READ: Final = frozenset(
    {"parse", "parse_one", "parse_into", "tokenize", "tokenizer", "transpile", "parser"}
)
"""Names of methods of sqlglot's that read a text; its functions are banned by ruff (`banned-api`)."""


def calls(path: Path) -> list[str]:
    """What a module reads of sqlglot by a method, or replaces in a module of it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports_it = any(
        (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sqlglot")
        or (
            isinstance(node, ast.Import)
            and any(a.name.split(".")[0] == "sqlglot" for a in node.names)
        )
        for node in ast.walk(tree)
    )
    if not imports_it:
        return []
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in READ
        ):
            found.append(f"{path.name}:{node.lineno} .{node.func.attr}()")
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if (
                isinstance(target, ast.Attribute)
                and ast.unparse(target.value).split(".")[0] == "sqlglot"
            ):
                found.append(f"{path.name}:{node.lineno} {ast.unparse(target)} =")
    return found


def test_no_other_room_reads_sql_by_a_method_of_sqlglot() -> None:
    others = [path for path in PACKAGE.rglob("*.py") if ROOM not in path.parents]
    assert len(others) > 300
    assert [call for path in others for call in calls(path)] == []


def test_the_room_replaces_no_function_of_sqlglot() -> None:
    found = [call for path in ROOM.glob("*.py") for call in calls(path)]
    assert found
    assert [call for call in found if call.endswith("=")] == []


def test_a_reading_and_a_replacement_are_seen(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import sqlglot\nfrom sqlglot.dialects.dialect import Dialect\n"
        "Dialect.get_or_raise('spark').tokenize('a')\nsqlglot.parse_one = None\n"
    )
    assert sorted(calls(module)) == [
        "module.py:3 .tokenize()",
        "module.py:4 sqlglot.parse_one =",
    ]
    module.write_text("import jinja2\njinja2.Environment().parse('a')\n")
    assert calls(module) == []


def test_a_text_that_no_tokenizer_reads_is_an_error() -> None:
    with pytest.raises(SqlglotError):
        tokenize("select 'a", "spark")
    with pytest.raises(SqlglotError):
        statement_texts("select 'a", "spark")
