"""Macros that tag and mask, rendered by a real dbt on DuckDB.

What the macros say of a node is what Python says of it, on the same nodes; what masks is executed,
and seen to mask by the lineage. `tests/spark/test_tags_in_metastore.py` has both on Spark.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import duckdb
import pytest
from dbt_here import run_dbt

from dbt_ripple.artifacts import (
    Column,
    Node,
    Project,
    column_pii,
    contract_version,
    criticality,
    domain,
    is_canonical,
    is_certified,
    is_public,
    owner,
    owner_channel,
    owner_email,
    read_project,
)
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.pii import pii_columns

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]

FILES = {
    "dbt_project.yml": """
name: p
version: 1.0.0
profile: p
flags: {send_anonymous_usage_stats: false}
models:
  p:
    folder: {+meta: {owner: "of the folder", criticality: tier3}, +tags: [Public]}
""",
    "profiles.yml": """
p:
  target: dev
  outputs:
    dev: {type: duckdb, path: p.duckdb, schema: s}
""",
    "models/groups.yml": """
groups:
  - {name: named, owner: {name: " Anna O'Neil ", email: a@x.example}}
  - {name: mailed, owner: {email: b@x.example}}
""",
    "models/models.yml": r"""
models:
  - {name: plain}
  - {name: of_group, config: {group: named, meta: {owner: not her}}}
  - {name: of_mail, config: {group: mailed}}
  - {name: person, meta: {owner: {name: "", email: c@x.example}, contract_version: 1.10, criticality: " tier1 "}}
  - {name: people, meta: {owner: [Ann, {name: Bob}, "", [Cy]], contract_version: 2.0, canonical: "Yes"}}
  - {name: odd, meta: {owner: "quote ' \\ back`tick \" 東京 $x", contract_version: true, certified: 1, public: "true"}}
  - {name: empty, meta: {owner: "", contract_version: "", criticality: "", canonical: null, pii: false}}
  - {name: numbers, meta: {owner: 7, contract_version: 3, criticality: 1, certified: true, pii: true}}
  - {name: tagged, config: {tags: [PII, public], meta: {public: false}}}
  - {name: kind, meta: {pii: " health "}}
  - name: columns
    columns:
      - {name: a, meta: {pii: email}}
      - {name: b, tags: [pii]}
      - {name: c, tags: [pii], meta: {pii: none}}
      - {name: D, meta: {pii: true}}
      - {name: "e'f", meta: {pii: "No"}}
      - {name: g, meta: {pii: " it's "}}
      - {name: h}
  - {name: of_folder}
  - {name: reached, meta: {owner: {name: Dee, email: dee@x.example, slack: "#dee"}, domain: sales}}
  - name: versioned
    latest_version: 2
    meta: {contract_version: 9}
    versions: [{v: 1}, {v: 2}]
  - name: masked
    columns: [{name: partial, meta: {pii: none}}]
  - {name: people_raw, columns: [{name: mail, meta: {pii: email}}]}
""",
    "models/by_code.sql": """
{{ config(meta=dbt_ripple.tags(owner='x', contract_version=1.5, criticality='tier2', pii='email', certified=true)) }}
select 1 as id""",
    "models/folder/of_folder.sql": "select 1 as id",
    "models/versioned_v1.sql": "select 1 as id",
    "models/versioned_v2.sql": "select 1 as id",
    "models/people_raw.sql": """
select 1 as id, 'anna@x.example' as mail union all select 2, 'a@b' union all select 3, null""",
    "models/masked.sql": """
select
    id,
    {{ dbt_ripple.mask('mail') }} as sha2,
    {{ dbt_ripple.mask('mail', 'redact') }} as redact,
    {{ dbt_ripple.mask('upper(mail)', how='partial', keep=3) }} as partial,
    {{ dbt_ripple.mask('mail', 'null') }} as nothing,
    {{ dbt_ripple.mask('id', 'null') }} as no_id
from {{ ref('people_raw') }}""",
    "analyses/tags.sql": """
{%- if execute -%}
    {%- set found = {} -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.package_name == 'p' -%}
        {%- do found.update({node.unique_id: dbt_ripple.node_tags(node)}) -%}
    {%- endfor -%}
    {{- tojson(found) -}}
{%- endif -%}""",
}
PLAIN = ("plain", "of_group", "of_mail", "person", "people", "odd", "empty", "numbers", "tagged")
PLAIN_TOO = ("kind", "columns", "reached")


class Dbt:
    """A small project that uses the package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plain = {f"models/{name}.sql": "select 1 as id" for name in (*PLAIN, *PLAIN_TOO)}
        for name, text in (FILES | plain).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "packages.yml").write_text(json.dumps({"packages": [{"local": str(REPOSITORY)}]}))
        (folder / "dbt_packages").mkdir()
        (folder / "dbt_packages" / "dbt_ripple").symlink_to(REPOSITORY)

    def __call__(self, *arguments: str, fails: bool = False) -> str:
        succeeded, output = run_dbt(self.folder, *arguments)
        assert succeeded is not fails, output
        return output


@pytest.fixture(scope="module")
def dbt(tmp_path_factory: pytest.TempPathFactory) -> Dbt:
    made = Dbt(tmp_path_factory.mktemp("p"))
    made("run", "--select", "people_raw", "masked")
    made("compile", "--select", "package:p")
    return made


@pytest.fixture(scope="module")
def project(dbt: Dbt) -> Project:
    return read_project(dbt.folder / "target")


def said_by_python(node: Node, project: Project) -> dict[str, str]:
    tags = {
        "owner": owner(node, project),
        "owner_email": owner_email(node, project),
        "owner_channel": owner_channel(node, project),
        "domain": domain(node, project),
        "contract_version": contract_version(node),
        "criticality": criticality(node),
        "canonical": "true" if is_canonical(node) else None,
        "certified": "true" if is_certified(node) else None,
        "public": "true" if is_public(node) else None,
        "pii": column_pii(Column(meta=node.meta, tags=node.tags)),
    }
    tags |= {f"column.{column.name}": column_pii(column) for column in node.columns.values()}
    return {name: value for name, value in tags.items() if value}


def test_macros_and_python_say_the_same(dbt: Dbt, project: Project) -> None:
    text = (dbt.folder / "target/compiled/p/analyses/tags.sql").read_text()
    by_macros: dict[str, dict[str, str]] = json.loads(text)
    by_python = {
        node.unique_id: said_by_python(node, project)
        for node in project.of_type("model")
        if node.package_name == "p"
    }
    assert by_macros == by_python
    # And both say something.
    assert by_python["model.p.of_group"]["owner"] == "Anna O'Neil"
    assert by_python["model.p.reached"] == {
        "owner": "Dee",
        "owner_email": "dee@x.example",
        "owner_channel": "#dee",
        "domain": "sales",
    }
    assert by_python["model.p.people"]["owner"] == "Ann, Bob, Cy"
    assert by_python["model.p.versioned.v2"]["contract_version"] == "2"
    assert by_python["model.p.columns"] == {
        "column.a": "email",
        "column.b": "pii",
        "column.D": "pii",
        "column.g": "it's",
    }
    assert by_python["model.p.by_code"] == {
        "owner": "x",
        "contract_version": "1.5",
        "criticality": "tier2",
        "certified": "true",
        "pii": "email",
    }


def test_masks_executed(dbt: Dbt) -> None:
    with duckdb.connect(str(dbt.folder / "p.duckdb")) as connection:
        rows = connection.sql("select * from s.masked order by id").fetchall()
        types = dict(
            zip(
                connection.table("s.masked").columns,
                connection.table("s.masked").types,
                strict=False,
            )
        )
    hashes = [hashlib.sha256(mail.encode()).hexdigest() for mail in ("anna@x.example", "a@b")]
    assert (str(types["nothing"]), str(types["no_id"])) == ("VARCHAR", "INTEGER")
    assert rows == [
        (1, hashes[0], "***", "***PLE", None, None),
        (2, hashes[1], "***", "***B", None, None),
        (3, None, None, None, None, None),
    ]


def test_what_is_masked_is_no_personal_data(project: Project) -> None:
    personal = {(c.unique_id, c.column) for c in pii_columns(project, analyse(project))}
    assert ("model.p.people_raw", "mail") in personal
    assert not any(unique_id == "model.p.masked" for unique_id, _ in personal)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("mask('mail', 'hide')", "how is hide; it can be sha2, redact, partial, null or tokenise"),
        ("mask('mail', 'tokenise')", "needs to know where duckdb keeps the salt"),
        ("tags(criticality='high')", "criticality is high; it can be tier1, tier2 or tier3"),
        ("tags(pii={'mail': 'email'})", "say it of a column in the yml file"),
    ],
)
def test_what_they_refuse(dbt: Dbt, call: str, complaint: str) -> None:
    wrong = dbt.folder / "models" / "wrong.sql"
    wrong.write_text(
        f"{{{{ config(materialized='view') }}}} select {{{{ dbt_ripple.{call} }}}} as x"
    )
    try:
        out = dbt("compile", "--select", "wrong", fails=True)
    finally:
        wrong.unlink()
    assert complaint in " ".join(out.split())
