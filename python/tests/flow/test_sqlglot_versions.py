"""What reads SQL gives the same with each version of sqlglot that the package allows, or does not follow it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import sqlglot

from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.reading import sqlglot_versions
from dbt_ripple.flow.reading.sqlglot_versions import MISREADINGS, Misreading

PYTHON_FOLDER: Final = Path(__file__).parents[2]
ALLOWED: Final = ("30.8.0", "30.19.0", "30.30.0")
"""The oldest, one between, and the newest."""
IS_NEWEST: Final = sqlglot.__version__ == ALLOWED[-1]
MISREADS: Final = "which this version of sqlglot misreads"

NEAR_MISSES: Final = {
    "INTERSECT behind UNION or EXCEPT, without brackets": (
        "select 1 as a union (select 2 as a intersect select 3 as a)"
    ),
    "LIMIT ALL": "select a from t limit 10",
    "a column that is called like a constant": "select t.a, null, true from t",
    "-> behind COLLATE": "select b -> 'c', a collate c from t",
    "-> beside arithmetic, without brackets": "select (a -> b) - c, a -> 'b', a - c from t",
    "AGGREGATE in a pipe, with GROUP BY": "from t |> aggregate sum(a) as n",
    "CLUSTER BY, DISTRIBUTE BY or SORT BY behind a set operation": (
        "select a from t union (select a from u sort by a)"
    ),
    "ORDER BY or OPTION behind a set operation": (
        "select a, row_number() over (order by a) as n from t union select a, 1 as n from u"
    ),
    "SETTINGS or FORMAT behind a set operation": "select a from t settings s = 1",
    "a table's hint without WITH": "select a from t as s with (nolock)",
    "an alias for a value of PIVOT": "select * from t pivot(sum(v) for c in ('a', 'b'))",
    "a join with a relation that is called like one before it": (
        'select * from t1 cross join "t2" as "c"'
    ),
    "a column as the key of a MAP": "select map {'b': a}, {b: 1} from t",
    "LEFT or FULL before a set operation": "select a from t union all by name select 2 as a",
    "a pipe beside WITH": "from t |> where b |> select c",
    "PASTE JOIN": "select paste from t join u on t.a = u.a",
    "a project of a domain": "select * from `my-project.d.t`",
    "NOT DETERMINISTIC": "select deterministic, not a from t",
    "a string with Unicode escapes": "select u & v, e'a' from t",
    "TIMESTAMPADD": "select timestampdiff(minute, a, b) from t",
    "JSON_VALUE ... RETURNING": "select json_value(a, '$.a') from t",
    "a name that is a word of joins": "select `straight` from t",
    "file()": "select * from url('a', b)",
}
"""Queries like those that an older version misreads, each of which every version reads."""

LEFT_OUT: Final = {"JSON_VALUE ... RETURNING"}
"""What `flow.reading.text_repairs` leaves out of a text, and tells: then every version reads the rest."""


def _in_a_dialect(of: Misreading) -> str:
    return next(iter(sorted(of.dialects)), "duckdb")


@pytest.mark.parametrize("of", MISREADINGS, ids=lambda of: f"{of.what} ({_in_a_dialect(of)})")
def test_a_query_is_read_as_the_newest_does_or_not_followed(of: Misreading) -> None:
    dialect = _in_a_dialect(of)
    reason = str(lower(of.query, dialect).reason or "")
    if of in sqlglot_versions._misreadings(dialect):
        assert reason == ("" if of.what in LEFT_OUT else f"{of.what}, {MISREADS}")
    else:
        assert MISREADS not in reason
    assert MISREADS not in str(lower(NEAR_MISSES[of.what], dialect).reason or "")
    if isinstance(of.found, str):
        tokens = sqlglot.tokenize(of.query, read=dialect)
        assert re.search(of.found, sqlglot_versions._words(of.query, tokens))


def test_the_newest_version_needs_nothing() -> None:
    needed = {m.what for d in sqlglot.Dialect.classes for m in sqlglot_versions._misreadings(d)}
    assert (needed == set()) == IS_NEWEST
    assert not (IS_NEWEST and sqlglot_versions._REPAIRS)


@pytest.mark.parametrize(
    ("sql", "ends"),
    [
        ("with t(x, not) as (select 1, 2) select x from t", False),
        ("select * from f(a) as t(x, not)", False),
        ("with t(x, y) as (select 1, not true) select coalesce(x, not y) as z from t", True),
        ("with t as materialized (select not a as b from u) select b from t where (not b)", True),
        ("select a from t as s join u on (a = b and not c) where s.a in (1, not b)", True),
    ],
)
def test_what_the_parser_never_comes_to_an_end_of_is_not_given_to_it(sql: str, ends: bool) -> None:
    assert (lower(sql, "duckdb").reason is None) == ends
    tokens = sqlglot.tokenize(sql, read="duckdb")
    assert (
        sqlglot_versions._NOT_AS_A_NAME.search(sqlglot_versions._words(sql, tokens)) is None
    ) == ends


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select stack(2, a, b) as (x) from t", "select stack(2, a, c) as (x) from t"),
        (
            "select sum(a) as s from t group by rollup(b)",
            "select sum(a) as s from t group by cube(b)",
        ),
        ("select a from t group by a with rollup", "select a from t group by a with cube"),
    ],
)
def test_what_older_versions_make_in_another_form_is_told_apart(one: str, other: str) -> None:
    assert lower(one, "spark").rel == lower(one, "spark").rel is not None
    assert lower(one, "spark").rel != lower(other, "spark").rel


def test_a_function_goes_by_the_name_it_was_written_with() -> None:
    known, unknown = (lower(f"select {name}(a) as x from t", "duckdb") for name in ("sin", "sec"))
    assert not known.rel.uncertain
    assert unknown.rel.uncertain  # DuckDB has none of that name, so it may be anybody's aggregate


ENGINE: Final = "from dbt_ripple.graph.cache import engine; print(engine().hex())"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The environment of a program that finds a version before the one that is installed here, by version."""
    environments = {}
    for version in ALLOWED:
        folder = tmp_path_factory.mktemp("sqlglot")
        uv = Path(sys.executable).with_name("uv")
        install = ["pip", "install", "--quiet", "--target", folder, f"sqlglot[c]=={version}"]
        subprocess.run([uv, *install], check=True)
        path = f"{folder}{os.pathsep}{PYTHON_FOLDER}"
        environments[version] = os.environ | {"PYTHONPATH": path}
        seen = [sys.executable, "-c", "import sqlglot; print(sqlglot.__version__)"]
        found = subprocess.check_output(seen, env=environments[version], text=True)
        assert found.strip() == version
    return environments


@pytest.mark.matrix
@pytest.mark.parametrize("version", ALLOWED)
def test_the_tests_of_flow_pass(version: str, installed: dict[str, dict[str, str]]) -> None:
    tests = ["tests/flow", "-q", "-n", "2", "-m", "not slow and not spark and not matrix"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests],
        cwd=PYTHON_FOLDER,
        env=installed[version],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.matrix
def test_no_version_reads_what_another_kept(installed: dict[str, dict[str, str]]) -> None:
    kept = [
        subprocess.check_output([sys.executable, "-c", ENGINE], env=environment, text=True)
        for environment in [*installed.values(), installed[ALLOWED[-1]]]
    ]
    assert len({*kept}) == len(ALLOWED)
    assert kept[-1] == kept[-2]  # the same version finds it again
