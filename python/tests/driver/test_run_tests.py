"""`select` on what `dbt parse` left, `--run` and `--output selector`, with a real dbt on DuckDB."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from dbt.contracts.graph.manifest import Manifest
from tiny_project import dbt, fingerprint, write

from dbt_ripple import cli
from dbt_ripple.artifacts import read_project
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.dbt_runner.run_selection import run_selection, to_run
from dbt_ripple.dbt_runner.selectors_yml import NAME, write_selector
from dbt_ripple.selection.result import BlockedTest, ProvenTest, SelectedTest, Selection

pytestmark = pytest.mark.slow
DOUBLED = (
    "select id as order_id, customer, amount * 2 as amount, status from {{ ref('raw_orders') }}"
)
BROKEN = DOUBLED.replace("status from", "nullif(status, 'new') as status from")


def ripple(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["dbt-ripple", *arguments])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def relations(project: Path) -> dict[str, set[str]]:
    """The relations in the database, by schema."""
    import duckdb
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager

    DuckDBConnectionManager.close_all_connections()
    with duckdb.connect(str(project / "tiny.duckdb"), read_only=True) as connection:
        rows = connection.sql("select table_schema, table_name from information_schema.tables")
        names_by_schema: dict[str, set[str]] = {}
        for schema, name in rows.fetchall():
            names_by_schema.setdefault(schema, set()).add(name)
    return names_by_schema


def test_after_a_parse_only_what_changed_is_compiled_built_and_tested(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    assert dbt(tiny, "parse")

    # Where dbt cannot compile here, what is not compiled counts as changed: wider, never wrong.
    profiles = (tiny / "profiles.yml").read_text()
    (tiny / "profiles.yml").write_text("tiny: {}\n")
    code, out, err = ripple(
        monkeypatch, capsys, "select", "--state", "../state", "--format", "json"
    )
    assert code == 0
    wide = json.loads(out)
    assert "2 nodes of head are not compiled, and dbt cannot compile here (" in err
    compiles = "`dbt compile --select tiny.pivoted tiny.stg_orders`"
    assert f": they count as changed; compile by {compiles}" in err
    counts = wide["counts"]
    assert counts["impacted_tests"] + counts["proven_tests"] == counts["all_tests"] == 7

    (tiny / "profiles.yml").write_text(profiles)
    code, out, err = ripple(
        monkeypatch, capsys, "select", "--state", "../state", "--format", "json"
    )
    assert code == 0, err
    asked = json.loads(out)

    code, out, err = ripple(
        monkeypatch, capsys, "select", "--state", "../state", "--format", "json", "--run"
    )
    assert code == 0, err
    narrow = json.loads(out)
    assert narrow["tests"] == asked["tests"]
    assert [test["name"] for test in narrow["tests"]] == [
        "not_null_big_orders_amount",
        "not_null_fct_customers_total",
    ]
    assert "compiled as for" not in err
    # Built is what is in `models`; what it reads besides is base's.
    assert relations(tiny)["dev"] == {"stg_orders", "big_orders", "fct_customers", "pivoted"}
    results = json.loads((tiny / "target" / "run_results.json").read_text())["results"]
    ran = (r["status"] for r in results if not r["unique_id"].startswith("operation."))  # a hook
    assert Counter(ran) == {"success": 4, "pass": 2}
    manifest = read_project(tiny / "target")
    assert not any("dbt_ripple" in " ".join(node.tags) for node in manifest.nodes.values())


def test_a_proven_test_runs_where_what_it_rests_on_fails(
    tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": BROKEN})
    tests = {test.name: test.unique_id for test in read_project(tmp_path / "state").of_type("test")}
    ground, resting = "not_null_inc_orders_status", "not_null_fct_customers_total"
    selection = Selection(
        tests=[SelectedTest(unique_id=tests[ground], name=ground, reason="")],
        models=["model.tiny.stg_orders", "model.tiny.inc_orders", "model.tiny.fct_customers"],
        proven=[
            ProvenTest(unique_id=tests[resting], reason="", facts=[tests[ground]]),
            # Rests on one that was run because its own ground failed, and passed.
            ProvenTest(
                unique_id=tests["unique_fct_customers_customer"],
                reason="",
                facts=[tests[resting]],
            ),
        ],
    )
    ran = run_selection(
        selection, tiny, tiny / "target", DbtOptions(profiles_dir=tiny), state=tmp_path / "state"
    )
    assert ran.failed
    assert ran.left_out == [tests[resting]]
    assert ran.statuses[tests[ground]] == "fail"
    assert ran.statuses[tests[resting]] == "pass"
    # It read what was just built, not what base has.
    compiled = read_project(tiny / "target" / "left_out").nodes[tests[resting]].compiled_code or ""
    assert '"dev"."fct_customers"' in compiled
    assert "running 1 test that had been left out" in capfd.readouterr().err


FUNCTION = {
    "functions/bumped.sql": "x + 1\n",
    "functions/functions.yml": """
functions:
  - name: bumped
    arguments: [{name: x, data_type: integer}]
    returns: {data_type: integer}
""",
    # DuckDB's functions are macros.
    "macros/functions.sql": """
{% macro duckdb__scalar_function_sql(target_relation) %}
create or replace macro {{ target_relation.schema }}.{{ target_relation.identifier }}(x) as
  ({{ model.compiled_code }})
{% endmacro %}
""",
    "models/bumps.sql": """
select order_id, {{ function('bumped') }}(amount) as amount from {{ ref('stg_orders') }}
""",
    "tests/no_large_amount.sql": "select * from {{ ref('bumps') }} where amount > 100\n",
}


@pytest.mark.skipif(not hasattr(Manifest, "function_lookup"), reason="dbt 1.11 has functions first")
@pytest.mark.parametrize("how", [("select", "--run"), ("run",)])
def test_a_changed_function_is_built_before_what_calls_it(
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    how: tuple[str, ...],
) -> None:
    """Base's function would let the test pass."""
    write(tiny, FUNCTION)
    assert dbt(tiny, "build", "--target", "prod", "--target-path", "../with_function")
    write(tiny, {"functions/bumped.sql": "x + 1000\n"})
    assert dbt(tiny, "parse")
    options = ("--state", "../with_function", "--format", "json")
    code, out, _ = ripple(monkeypatch, capsys, *how, *options)
    assert json.loads(out)["models"] == ["model.tiny.bumps", "function.tiny.bumped"]
    results = json.loads((tiny / "target" / "run_results.json").read_text())["results"]
    statuses = {result["unique_id"]: result["status"] for result in results}
    assert statuses["test.tiny.no_large_amount"] == "fail"
    assert code == 1


def test_who_has_to_run() -> None:
    proven = [
        ProvenTest(unique_id=name, reason="", facts=facts)
        for name, facts in (("a", ["x"]), ("b", ["y", "z"]), ("c", ["not run"]), ("d", []))
    ]
    selection = Selection(proven=proven)
    passed = {"x": "pass", "y": "success", "z": "pass"}
    assert to_run(selection, passed) == []
    for status in ("fail", "error", "skipped", "warn"):
        assert to_run(selection, passed | {"z": status}) == ["b"]
    assert to_run(selection, {"z": "fail", "b": "pass"}) == []


def test_a_blocked_test_runs_where_what_blocks_it_is_built_after_all() -> None:
    selection = Selection(blocked=[BlockedTest(unique_id="a", reason="", blocked_by="model.p.m")])
    for status in ("error", "skipped"):
        assert to_run(selection, {"model.p.m": status}) == []
    assert to_run(selection, {}) == []
    assert to_run(selection, {"model.p.m": "success"}) == ["a"]
    assert to_run(selection, {"model.p.m": "success", "a": "pass"}) == []


def test_a_failing_test_is_exit_code_1_and_a_dbt_that_cannot_run_2(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": DOUBLED.replace("status from", "'x' as status from")})
    code, out, _ = ripple(
        monkeypatch, capsys, "select", "--base-ref", "main", "--target", "prod", "--run"
    )
    assert code == 1
    assert "accepted_values_stg_orders_status__new__paid" in out
    # Without a state nothing is deferred: the rest is what the target has.
    assert "dev" not in relations(tiny)

    write(tiny, {"models/stg_orders.sql": "select {{ no_such_macro() }}"})
    assert dbt(tiny, "parse")
    code, out, err = ripple(monkeypatch, capsys, "select", "--state", "../state", "--run")
    assert (code, out) == (2, "")
    assert "'no_such_macro' is undefined" in err.splitlines()[-1]


def test_nothing_changed_is_reported_and_nothing_run(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbt(tiny, "parse")
    before = fingerprint(tiny / "target")
    code, out, _ = ripple(monkeypatch, capsys, "select", "--state", "../state", "--run")
    assert (code, out) == (0, "nothing changed\n")
    assert fingerprint(tiny / "target") == before
    assert "dev" not in relations(tiny)


def test_without_a_state_what_is_read_is_built_and_that_is_reported(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tiny,
        {
            "models/fct_customers.sql": "select customer, {{ total('amount') }} + 1 as total\n"
            "from {{ ref('stg_orders') }} group by customer\n"
        },
    )
    # Where something is built already, so that a model that looks at it compiles.
    options = ("--base-ref", "main", "--target", "prod", "--run", "--output", "names")
    code, out, err = ripple(monkeypatch, capsys, "select", *options)
    assert (code, out.split()) == (0, ["fct_customers", "not_null_fct_customers_total"]), err
    assert "nothing to defer to: 2 nodes that these read are built, too" in err
    results = json.loads((tiny / "target" / "run_results.json").read_text())["results"]
    ran = {
        r["unique_id"]: r["status"] for r in results if r["unique_id"].split(".")[0] != "operation"
    }
    assert [u.split(".")[2] for u in ran] == [
        *("raw_orders", "stg_orders", "fct_customers"),
        "not_null_fct_customers_total",
    ]
    assert set(ran.values()) == {"success", "pass"}


# --- selectors.yml ---------------------------------------------------------------------------------

THEIRS = """\
# Ours: ask before you change one.
selectors:
  - name: nightly   # with the slow ones
    definition:
      method: tag
      value: "nightly"

  - {name: dbt_ripple, definition: {method: fqn, value: old}}
  # more to come
"""


def listed(project: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    from dbt.cli.main import dbtRunner

    arguments = ["--quiet", "ls", "--selector", NAME, "--output", "json", "--output-keys"]
    result = dbtRunner().invoke([*arguments, "unique_id", "--project-dir", str(project)])
    capsys.readouterr()
    assert result.success, result.exception
    return {json.loads(line)["unique_id"] for line in result.result}


def test_a_selector_selects_just_that_and_keeps_the_file(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A model called as the folder beside it, and as a model's folder: dbt's fqn takes both.
    write(
        tiny,
        {
            "models/finance.sql": "select 1 as a",
            "models/finance/deep.sql": "select 2 as a",
            "models/finance/deep/er.sql": "select 3 as a",
            "models/v/versioned_v2.sql": "select 4 as a",
            "models/v/versioned_v1.sql": "select 5 as a",
            "models/v/v.yml": "models: [{name: versioned, versions: [{v: 1}, {v: 2}]}]",
            "selectors.yml": THEIRS,
        },
    )
    assert dbt(tiny, "parse")
    head = read_project(tiny / "target")
    models = [
        "model.tiny.stg_orders",
        "model.tiny.finance",
        "model.tiny.er",
        "model.tiny.versioned.v2",
        "seed.tiny.raw_orders",
    ]
    tests = [
        SelectedTest(unique_id=test.unique_id, name=test.name, reason="")
        for test in head.of_type("test")[:3]
    ]
    selection = Selection(models=models, tests=tests)
    path = write_selector(selection, head, tiny)
    assert listed(tiny, capsys) == {*models, *(test.unique_id for test in tests)}

    text = path.read_text()
    kept = THEIRS.partition("  - {name: dbt_ripple")[0]
    assert text.startswith(kept)
    assert "  # more to come\n" in text
    write_selector(selection, head, tiny)
    assert path.read_text() == text

    path.unlink()
    write_selector(Selection(), head, tiny)
    assert listed(tiny, capsys) == set()


@pytest.mark.parametrize("text", ["- a\n- b\n", "selectors: {a: 1}\n", "a: [\n", "\x00"])
def test_a_file_that_is_not_selectors_is_refused_and_kept(
    tiny: Path, tmp_path: Path, text: str
) -> None:
    from dbt_ripple.errors import RippleError

    (tiny / "selectors.yml").write_text(text)
    with pytest.raises(RippleError, match="is not a list of selectors") as refused:
        write_selector(Selection(), read_project(tmp_path / "state"), tiny)
    assert "\n" not in str(refused.value)
    assert (tiny / "selectors.yml").read_text() == text
    assert not list(tiny.glob(".selectors*"))
