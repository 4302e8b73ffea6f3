"""What dbt writes into no artifact is said, or compared where the project files are at hand.

Each case was first executed by a real dbt: a test's result differed, and nothing said so.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.changes import comparability
from dbt_ripple.changes.comparability import with_macro_order
from dbt_ripple.graph.file_reads import files_read
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.reasons import Reason


def compared(base: Project, head: Project) -> list[Reason]:
    return comparability.check(ProjectContext(base), ProjectContext(head))


TIDY = macro(
    "macro.q.tidy", "{% macro tidy() %}{{ adapter.dispatch('tidy', 'q')() }}{% endmacro %}"
)


def version(package: str, name: str) -> Macro:
    text = f"{{% macro default__{name}() %}}update {{{{ this }}}} set x = 1{{% endmacro %}}"
    return macro(f"macro.{package}.default__{name}", text)


def materialization(package: str) -> Macro:
    name = "materialization_table_duckdb"
    text = "{% materialization table, adapter='duckdb' %}{% endmaterialization %}"
    return macro(f"macro.{package}.{name}", text)


def side(
    *macros: Macro, hook: str = "", materialized: str = "table", sql: str = "select 1 as x"
) -> Project:
    config = {"materialized": materialized, "post-hook": [{"sql": hook}] if hook else []}
    model = node("model.p.m", sql, RAW, config=config)
    other = node("model.p.n", "select 1 as x", config={"materialized": "view"})
    tests = (
        check("t", "select x from s.m", "model.p.m"),
        check("u", "select x from s.n", "model.p.n"),
    )
    macros_of_project = list(macros)
    return project(
        orders(), model, other, *tests, catalog=LISTED, macros=macros_of_project, adapter="duckdb"
    )


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (side(TIDY, version("q", "tidy"), version("p", "tidy"), hook="{{ q.tidy() }}"), True),
        (side(TIDY, version("q", "tidy"), hook="{{ q.tidy() }}"), False),
        (side(TIDY, version("q", "tidy"), version("p", "tidy")), False),
        (side(materialization("dbt_duckdb"), materialization("q")), True),
        (side(materialization("dbt_duckdb"), materialization("p")), False),
    ],
)
def test_the_order_in_which_packages_are_looked_for_macros(made: Project, counts: bool) -> None:
    codes = {reason.code.name for reason in compared(made, made)}
    assert ("MACRO_ORDER_UNSEEN" in codes) == counts
    base, head = with_macro_order(made, made, "['q', 'dbt']", "['p', 'q']")
    assert names(base, head) == (["t"] if counts else [])
    assert "MACRO_ORDER_UNSEEN" not in {reason.code.name for reason in compared(base, head)}
    assert names(*with_macro_order(made, made, "['q']", "['q']")) == []


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("select * from read_csv('data/a.csv')", ["data/a.csv"]),
        ("select * from read_parquet(['data/a.parquet']) join 'b.csv' using (x)", ["b.csv", "data/a.parquet"]),
        ("select * from read_csv(['a.csv', 'data/b.csv'])", ["a.csv", "data/b.csv"]),
        ('select * from s.orders join "c.json" using (x)', ["c.json"]),
        ("select * from read_csv('s3://bucket/a.csv')", []),
        ("select extract(year from '2026-01-01 10:00:00.5') as x from s.orders", []),
        ("select 'read.csv' as x from s.orders where x = 'a.csv'", []),
    ],
)  # fmt: skip
def test_a_file_that_a_query_reads(sql: str, files: list[str]) -> None:
    made = side(sql=sql)
    file_names = [
        r.arguments["names"] for r in compared(made, made) if r.code.name == "FILES_UNSEEN"
    ]
    assert file_names == ([files] if files else [])


def test_a_file_that_a_hook_copies_or_a_python_model_opens() -> None:
    copied = side().nodes["model.p.m"]
    hooked = replace(
        copied, config={**copied.config, "post-hook": [{"sql": "copy s.m from 'd.csv'"}]}
    )
    python = replace(
        copied,
        language="python",
        raw_code="def model(dbt, s):\n    return open('rates.json').read()\n",
        compiled_code=None,
    )
    assert [files_read(node, "duckdb") for node in (copied, hooked, python)] == [
        [],
        ["d.csv"],
        ["rates.json"],
    ]


def test_a_module_beside_the_project_that_a_python_model_imports(tmp_path: Path) -> None:
    (tmp_path / "rates.py").write_text("TAX = 19\n")
    code = "import pandas\nfrom rates import TAX\ndef model(dbt, session):\n    return None\n"
    made = side()
    made.nodes["model.p.m"] = replace(
        made.nodes["model.p.m"], language="python", raw_code=code, compiled_code=None
    )
    made = made.having(target_path=str(tmp_path / "target"))
    file_names = [
        r.arguments["names"] for r in compared(made, made) if r.code.name == "FILES_UNSEEN"
    ]
    assert file_names == [["rates.py"]]


def test_a_module_on_the_path_is_said_and_what_is_installed_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib" / "taxes").mkdir(parents=True)
    (tmp_path / "lib" / "taxes" / "vat.py").write_text("TAX = 19\n")
    code = "import os, taxes.vat as v; import pytest\ndef model(dbt, session):\n    return None\n"
    made = side()
    made.nodes["model.p.m"] = replace(
        made.nodes["model.p.m"], language="python", raw_code=code, compiled_code=None
    )
    said = lambda: [r for r in compared(made, made) if r.code.name == "FILES_UNSEEN"]  # noqa: E731
    assert said() == []
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    assert [r.arguments["names"] for r in said()] == [["taxes.py"]]


@pytest.mark.parametrize(
    ("schema", "written", "noted"),
    [
        ("s", "{{ env_var('RAW') }}", False),
        ("other", "{{ env_var('RAW') }}", True),
        ("other", "{{ target.schema }}", True),
        ("other", "other", False),  # that is a change of the project, which is compared
        ("other", None, True),  # dbt 1.8 does not tell which it is
    ],
)
def test_a_source_that_is_elsewhere_by_the_environment(
    schema: str, written: str | None, noted: bool
) -> None:
    base, head = side(), side()
    as_written = "s" if written == "other" else written
    for made, place, text in ((base, "s", as_written), (head, schema, written)):
        for name, source in made.nodes.items():
            if source.resource_type == "source":
                made.nodes[name] = replace(source, schema=place, unrendered_schema=text)
    codes = {reason.code.name for reason in compared(base, head)}
    assert ("SOURCES_ELSEWHERE" in codes) == noted
