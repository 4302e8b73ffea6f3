"""Tags through a real Hive metastore and back, and masks on Spark: one dbt, one session.

For a table, a view, an incremental model, a seed and a snapshot (Delta has these): written, changed,
removed, kept across a second run and a full refresh, and drift seen.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from drive import on_own_spark

REPOSITORY = Path(__file__).parents[3]
SALT = "0123456789abcdef01"

# Snapshots and incremental models need Delta Lake, which has to be there when the JVM starts.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix]

NASTY = 'it\'s "quoted" \\ back`tick ; -- ${x} 東京'
KINDS = ("a_table", "a_view", "an_increment", "a_seed", "a_snapshot")
OF_EACH = """
    config:
      tags: "{{ var('labels', []) }}"
      meta: {owner: "{{ var('owner', 'anna') }}", criticality: "{{ var('criticality', 'tier1') }}"}
    columns:
      - {name: id, description: "Its number, it's.", meta: {pii: "{{ var('pii', 'none') }}"}}
      - {name: mail, meta: {pii: email}}
    data_tests: [{dbt_ripple.tags_match: {config: {severity: warn, store_failures: true}}}]
"""
QUERY = "select cast(1 as bigint) as id, cast('anna@x.example' as string) as mail"
MASKS = ("sha2", "redact", "partial", "null", "tokenise")
FILES = {
    "dbt_project.yml": """
name: tagged
version: 1.0.0
profile: tagged
models:
  tagged: {+materialized: table, +file_format: delta, +post-hook: "{{ dbt_ripple.apply_tags() }}"}
seeds: {tagged: {+post-hook: "{{ dbt_ripple.apply_tags() }}", +file_format: parquet}}
snapshots: {tagged: {+post-hook: "{{ dbt_ripple.apply_tags() }}", +file_format: delta}}
vars: {dbt_ripple: {ripple_column_comments: true}}
""",
    "profiles.yml": """
tagged:
  target: dev
  outputs:
    dev:
      type: spark
      method: session
      host: localhost
      schema: tagged
      threads: 2
      server_side_parameters:
        dbt_ripple.salt: "{{ env_var('DBT_ENV_SECRET_RIPPLE_SALT') }}"
""",
    "models/a_table.sql": QUERY,
    "models/a_view.sql": "{{ config(materialized='view') }} " + QUERY,
    "models/an_increment.sql": "{{ config(materialized='incremental', unique_key='id') }} " + QUERY,
    "models/masked.sql": "{{ config(materialized='table') }} select "
    + ", ".join(f"{{{{ dbt_ripple.mask('mail', '{how}') }}}} as how_{how}" for how in MASKS)
    + " from {{ ref('a_table') }} union all select "
    + ", ".join(
        f"{{{{ dbt_ripple.mask('cast(null as string)', '{how}') }}}} as how_{how}" for how in MASKS
    ),
    "models/leaky.sql": "{{ config(materialized='view', enabled=var('leaky', false)) }}"
    " select {{ dbt_ripple.mask('mail', 'tokenise') }} as x from {{ ref('a_table') }}",
    "seeds/a_seed.csv": "id,mail\n1,anna@x.example\n",
    "snapshots/a_snapshot.sql": "{% snapshot a_snapshot %}{{ config(unique_key='id', "
    "strategy='check', check_cols='all', target_schema='tagged') }}"
    " select * from {{ ref('a_table') }}{% endsnapshot %}",
    "models/all.yml": "models:\n"
    + "".join(f"  - name: {name}{OF_EACH}" for name in KINDS[:3])
    + "seeds:\n"
    + f"  - name: a_seed{OF_EACH}"
    + "snapshots:\n"
    + f"  - name: a_snapshot{OF_EACH}",
}


@pytest.fixture(scope="module")
def loaded_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What each question was answered, in order, by the name given to it."""
    folder = tmp_path_factory.mktemp("tagged")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "packages.yml").write_text(json.dumps({"packages": [{"local": str(REPOSITORY)}]}))
    (folder / "dbt_packages").mkdir()
    (folder / "dbt_packages" / "dbt_ripple").symlink_to(REPOSITORY)
    changed = json.dumps({"owner": NASTY, "criticality": "", "pii": "it's", "labels": ["public"]})
    build = "dbt build --exclude package:dbt_ripple"
    tags = [f"sql show tblproperties tagged.{name}" for name in KINDS]
    commands = {
        "first": [build, *tags],
        "again": [build, *tags, "sql describe history tagged.an_increment"],
        "changed": [f"{build} --vars {_quoted(changed)}", *tags],
        "comments": ["sql describe table tagged.a_table", "sql describe table tagged.a_seed"],
        "refreshed": [f"{build} --full-refresh", *tags],
        "masked": ["sql select * from tagged.masked order by how_sha2 nulls last"],
        "drift": [
            "sql alter table tagged.a_table set tblproperties ('dbt_ripple.owner' = 'mallory')",
            "sql alter view tagged.a_view unset tblproperties ('dbt_ripple.column.mail')",
            "sql alter table tagged.a_seed set tblproperties ('dbt_ripple.old' = 'x', 'y' = 'z')",
            "dbt test --select test_name:tags_match",
            *(
                f"sql select * from tagged_dbt_test__audit.dbt_ripple_tags_match_{name}_"
                for name in KINDS
            ),
        ],
    }
    flat = [(name, command) for name, group in commands.items() for command in group]
    run = on_own_spark(
        *(folder / "out", "delta", folder, *(c for _, c in flat)),
        DBT_ENV_SECRET_RIPPLE_SALT=SALT,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    answers = iter([json.loads(line) for line in run.stdout.splitlines() if line[:1] == "["])
    rows_of: dict[str, list[Any]] = {}
    for name, command in flat:
        if command.startswith("sql "):
            rows_of.setdefault(name, []).append(next(answers))
    rows_of["artifacts"] = [
        [path.read_text(errors="replace")] for path in (folder / "out").rglob("*.sql")
    ]
    return rows_of


def _quoted(text: str) -> str:
    """A word for `shlex`."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def held(rows: list[dict[str, Any]]) -> dict[str, str]:
    prefix = "dbt_ripple."
    return {
        row["key"].removeprefix(prefix): row["value"]
        for row in rows
        if row["key"].startswith(prefix)
    }


FIRST = {"owner": "anna", "criticality": "tier1", "column.mail": "email"}
CHANGED = {"owner": NASTY, "public": "true", "column.id": "it's", "column.mail": "email"}


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("first", FIRST),
        ("again", FIRST),
        ("changed", CHANGED),
        ("refreshed", FIRST),
    ],
)
def test_the_metastore_holds_what_the_project_says(
    loaded_tables: dict[str, list[Any]], moment: str, expected: dict[str, str]
) -> None:
    for name, rows in zip(KINDS, loaded_tables[moment], strict=False):
        assert held(rows) == expected, (moment, name)


def test_where_nothing_differs_nothing_is_written(loaded_tables: dict[str, list[Any]]) -> None:
    written = [row["operation"] for row in loaded_tables["again"][-1]]
    assert written.count("SET TBLPROPERTIES") == 1
    assert "UNSET TBLPROPERTIES" not in written


def test_comments_where_asked(loaded_tables: dict[str, list[Any]]) -> None:
    for rows in loaded_tables["comments"]:
        comments = {row["col_name"]: row["comment"] or "" for row in rows}
        assert (comments["id"], comments["mail"]) == (
            "Its number, it's. [pii: it's]",
            "[pii: email]",
        )


def test_drift_is_seen_and_nothing_else(loaded_tables: dict[str, list[Any]]) -> None:
    *_, table, view, incremental, seed, snapshot = loaded_tables["drift"]
    assert [tuple(row.values()) for row in table] == [("owner", "anna", "mallory")]
    assert [tuple(row.values()) for row in view] == [("column.mail", "email", None)]
    assert [tuple(row.values()) for row in seed] == [("old", None, "x")]
    assert incremental == snapshot == []


def test_masks_on_spark(loaded_tables: dict[str, list[Any]]) -> None:
    ((row, nothing),) = loaded_tables["masked"]
    mail = "anna@x.example"
    assert row == {
        "how_sha2": hashlib.sha256(mail.encode()).hexdigest(),
        "how_redact": "***",
        "how_partial": "***mple",
        "how_null": None,
        "how_tokenise": hashlib.sha256(f"{SALT}:{mail}".encode()).hexdigest(),
    }
    assert set(nothing.values()) == {None}
    assert not any(SALT in text for (text,) in loaded_tables["artifacts"])
    assert any("${dbt_ripple.salt}" in text for (text,) in loaded_tables["artifacts"])
