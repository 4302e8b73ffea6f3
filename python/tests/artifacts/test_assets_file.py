"""`ripple_assets.yml`: its shape, and that each bad file is one line that names the place."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from dbt_ripple.artifacts.assets_file import parse_assets, read_assets
from dbt_ripple.artifacts.paths import assets_files
from dbt_ripple.errors import RippleError

GOOD = """
assets:
  - id: airflow:load_orders
    source_ref: dags/load_orders.py
    owner: data@shop.example
    tags: nightly
    reads:
      - node: api:shop
        columns: {a: b, c: [d, e]}
    writes:
      - raw.raw_orders
      - node: x
        columns:
          - a
          - {from: [b, d], to: c, transformation: sum(b), masking: true}
    last_seen: 2026-01-01
  - id: "my-scheduler:load"
    type: dag
    owner: {name: Data, slack: "#data"}
"""


def test_what_a_file_may_say() -> None:
    first, second = parse_assets(GOOD, "f.yml")
    assert (first.id, first.type, first.name) == ("airflow:load_orders", "dag", "load_orders")
    assert first.unique_id == "asset.airflow.load_orders"
    assert (first.owner, first.tags) == ({"email": "data@shop.example"}, ("nightly",))
    (read,) = first.reads
    assert [(flow.sources, flow.target) for flow in read.columns or ()] == [
        (("a",), "b"),
        (("c",), "d"),
        (("c",), "e"),
    ]
    whole, mapped = first.writes
    assert (whole.node, whole.columns) == ("raw.raw_orders", None)
    same, made = mapped.columns or ()
    assert (same.sources, same.target, same.transformation) == (("a",), "a", None)
    assert (made.sources, made.transformation, made.masking) == (("b", "d"), "sum(b)", True)
    assert first.last_seen == date(2026, 1, 1)
    assert (first.place, second.place) == ("f.yml:3", "f.yml:17")
    assert (second.type, second.owner) == ("dag", {"name": "Data", "slack": "#data"})


@pytest.mark.parametrize("text", ["", "assets:\n", "assets: []\n", "# nothing yet\n"])
def test_a_file_may_be_empty(text: str) -> None:
    assert parse_assets(text, "f.yml") == []


ONE = "assets:\n  - id: dag:load\n"

BAD = {
    "- a\n": "f.yml:1: is no mapping; begin with `assets:`, and list them below it",
    "asets: []\n": "f.yml:1: unknown key 'asets'; did you mean assets?",
    "assets: 3\n": "f.yml:1: `assets`: expected `array`, got `int`; see docs/assets.md",
    "assets:\n  - load\n": "f.yml:2: an asset is a mapping; begin it with `- id: TYPE:NAME`",
    "assets:\n\t- id: dag:load\n": "f.yml:2: a tab stands where YAML wants spaces; indent by spaces",
    f"{ONE}  \tsql: x\n": "f.yml:3: a tab stands where YAML wants spaces; indent by spaces",
    "assets: [\n": "f.yml:2: expected the node content, but found '<stream end>'; correct it as YAML",
    f"{ONE}    id: dag:other\n": 'f.yml:3: found duplicate key "id"',
    "assets:\n  - type: dag\n": "f.yml:2: `id` is missing; add it",
    "assets:\n  - id: load orders\n": "f.yml:2: 'load orders' is no id of an asset; write WHAT:NAME",
    "assets:\n  - id: asset:load\n": "f.yml:2: 'asset:load' begins with asset:, which means any",
    "assets:\n  - id: cron:load\n": "f.yml:2: cron:load has no type, and 'cron' says none; add `type:`",
    f"{ONE}    type: dags\n": "f.yml:3: 'dags' is no type of an asset; did you mean dag?",
    f"{ONE}    type: DAG\n": "f.yml:3: 'DAG' is no type of an asset; did you mean dag?",
    f"{ONE}    typ: dag\n": "f.yml:3: unknown key 'typ'; did you mean type?",
    f"{ONE}    reads: a\n": "f.yml:3: `reads`: expected `array`, got `str`; see docs/assets.md",
    f"{ONE}    reads:\n      - 3\n": "f.yml:4: 3 is no name; give a name, or a mapping",
    f"{ONE}    reads:\n      - {{nod: a}}\n": "f.yml:4: unknown key 'nod'; did you mean node?",
    f"{ONE}    reads:\n      - columns: []\n": "f.yml:4: `node` is missing; add it",
    f"{ONE}    reads:\n      - node: a\n        columns: {{from: a, to: b}}\n": (
        "f.yml:5: `columns` is one entry, not a list of them; write `columns: [{from: A, to: B}]`"
    ),
    f"{ONE}    reads:\n      - node: a\n        columns:\n          - {{from: [a, b]}}\n": (
        "f.yml:6: `from` has several columns and `to` is missing; add `to`"
    ),
    f"{ONE}    reads:\n      - node: a\n        columns:\n          - {{to: 2, from: a}}\n": (
        "f.yml:6: `to`: expected `str | null`, got `int`; see docs/assets.md"
    ),
    f"{ONE}    columns: [a, b, A]\n": "f.yml:3: column A is listed twice; list it once",
    f"{ONE}    last_seen: soon\n": "f.yml:3: `last_seen`: invalid RFC3339 encoded date",
    f"{ONE}    dialect: spark\n": "f.yml:3: `dialect` stands without `sql`; add the SQL",
    f"{ONE}    sql: ' '\n": "f.yml:3: `sql` is empty; give the job's SQL, or take it out",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_file_is_one_line_that_names_the_place(text: str) -> None:
    with pytest.raises(RippleError) as refused:
        parse_assets(text, "f.yml")
    message = str(refused.value)
    assert message.startswith(BAD[text])
    assert "\n" not in message


def test_an_id_is_declared_once_over_all_files(tmp_path: Path) -> None:
    files = [tmp_path / "ripple_assets.yml", tmp_path / "more.yml"]
    files[0].write_text(ONE)
    files[1].write_text("assets:\n  - id: dag:other\n  - id: DAG:load\n")
    with pytest.raises(RippleError) as refused:
        read_assets(files)
    expected = (
        f"{files[1]}:3: DAG:load is declared twice, first at {files[0]}:2; keep one of the two"
    )
    assert str(refused.value) == expected


def test_the_files_of_a_project(tmp_path: Path) -> None:
    assert assets_files(tmp_path, []) == []
    own = tmp_path / "ripple_assets.yml"
    own.write_text(ONE)
    assert assets_files(tmp_path, [own]) == [own]
    with pytest.raises(RippleError, match=r"no such file; name a file like ripple_assets\.yml"):
        assets_files(tmp_path, [tmp_path / "gone.yml"])


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RippleError, match="cannot be read: is not UTF-8; give a text file"):
        read_assets([file])
