"""`dbt-ripple analyze`, on a project compiled by dbt 1.11 and on analyses made by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_shell import Shell
from msgspec.structs import replace

from dbt_ripple.artifacts import CatalogColumn, Metadata, Node, Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.analysis_coverage import AnalysisCoverage, analysis_coverage
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, NodeAnalysis
from dbt_ripple.reasons import Code
from dbt_ripple.rendering.analysis_coverage import COLUMNS, render, writer
from dbt_ripple.rendering.escaping import line as printed

EDGES = [
    ColumnEdge("source.s.raw.x", "a", "model.s.m", 'a "quoted", name', "DIRECT", "IDENTITY", False),
    ColumnEdge("source.s.raw.x", "b", "model.s.m", "*rows*", "INDIRECT", "FILTER", True),
]


def project(**catalog: list[CatalogColumn]) -> Project:
    nodes = {
        "source.s.raw.x": Node(name="x", resource_type="source", source_name="raw"),
        "model.s.m": Node(name="m", resource_type="model", compiled_code="select 1"),
        "model.s.star": Node(name="star", resource_type="model", compiled_code="select *"),
        "model.s.bad": Node(name="bad", resource_type="model", compiled_code="select z"),
        "snapshot.s.snap": Node(name="snap", resource_type="snapshot", compiled_code="select"),
    }
    for unique_id, node in nodes.items():
        nodes[unique_id] = replace(node, unique_id=unique_id)
    children = {unique_id: [] for unique_id in nodes} | {"source.s.raw.x": ["model.s.m"]}
    return Project(
        target_path="",
        metadata=Metadata(project_name="s", dbt_version="1.11.16", adapter_type="spark"),
        nodes=nodes,
        parents={unique_id: [] for unique_id in nodes},
        children=children,
        catalog=catalog,
    )


STAR = Code.STAR_UNKNOWN(parents=["raw.x"])
MISSING = Code.CANNOT_FIND(names=["z |\n of x"])
ANALYSIS = Analysis(
    nodes={
        "source.s.raw.x": NodeAnalysis("source.s.raw.x", "leaf", columns=["a", "b"]),
        "model.s.m": NodeAnalysis("model.s.m", "analysed", columns=["a"]),
        "model.s.star": NodeAnalysis("model.s.star", "opaque", STAR),
        "model.s.bad": NodeAnalysis("model.s.bad", "broken", MISSING),
        "snapshot.s.snap": NodeAnalysis("snapshot.s.snap", "analysed", columns=["a", "b"]),
    },
    edges=EDGES,
    test_columns=[],
    seconds={"parse": 1.25, "link": 0.5},
)


def shown(style: str, of: Project | None = None) -> str:
    return rendered(analysis_coverage(of or project(), ANALYSIS, 0.25), style)


def rendered(summary: AnalysisCoverage, style: str) -> str:
    return "\n".join(map(printed, render(summary, style)))


# --- what is printed -------------------------------------------------------------------------------


def test_json_has_the_shape_of_the_issue() -> None:
    document = json.loads(shown("json"))
    fields = ["models", "analysed", "opaque", "columns", "edges", "seconds"]
    assert list(document) == ["schema_version", *fields]
    assert document == {
        "schema_version": 1,
        "models": 3,
        "analysed": 1,
        "opaque": [
            {
                "unique_id": "model.s.star",
                "reason": STAR.message,
                "reason_code": "star_unknown",
                "reason_arguments": {"parents": ["raw.x"]},
            },
            {
                "unique_id": "model.s.bad",
                "reason": 'broken: cannot find "z |\n of x"',
                "reason_code": "broken",
                "reason_arguments": {
                    "because": {
                        "code": "cannot_find",
                        "arguments": {"names": ["z |\n of x"]},
                        "message": 'cannot find "z |\n of x"',
                    }
                },
            },
        ],
        "columns": 5,
        "edges": 2,
        "seconds": {"read": 0.25, "parse": 1.25, "link": 0.5},
    }


def test_text_is_short_and_says_what_to_do_next() -> None:
    assert shown("text").splitlines() == [
        "s · dbt 1.11.16 · spark · 3 models, 1 source, 1 snapshot",
        "",
        "  analysed  1 of 3 models (33%)",
        "  opaque    1",
        "  broken    1",
        "  columns   5",
        "  edges     2 (1 DIRECT, 1 INDIRECT)",
        "  seconds   2.0 (read 0.2, parse 1.2, link 0.5)",
        "",
        "Opaque: every column is taken to depend on all that its parents hold",
        f"  star  {STAR}",
        "",
        "Broken: a column it reads does not exist, or is ambiguous",
        '  bad  cannot find "z |\\n of x"',
        "",
        "Next: no catalog.json: `dbt docs generate` tells the columns of sources, for `select *`",
        "Next: dbt-ripple trace raw.x",
    ]


def test_what_to_do_next_depends() -> None:
    with_catalog = project(x=[CatalogColumn(name="a")])
    assert shown("text", with_catalog).splitlines()[-2:] == ["", "Next: dbt-ripple trace raw.x"]
    with_catalog.nodes["model.s.m"] = replace(with_catalog.nodes["model.s.m"], compiled_code=None)
    assert "Next: 1 node not compiled: run `dbt docs generate" in shown("text", with_catalog)


def test_a_catalog_that_is_older_is_to_be_written_again() -> None:
    """A project may have committed the catalog of another year; what it lists decides nothing."""
    of = project(x=[CatalogColumn(name="a")]).having(catalog_is_older=True)
    unsure = NodeAnalysis(
        "model.s.bad", "opaque", Code.MAY_NOT_BUILD(because=Code.CANNOT_FIND(names=["z"]))
    )
    analysis = Analysis({"model.s.bad": unsure}, [], [], {})
    hint = "Next: catalog.json is older than manifest.json: run `dbt docs generate` again"
    assert hint in rendered(analysis_coverage(of, analysis, 0.0), "text")
    newer = of.having(catalog_is_older=False)
    assert hint not in rendered(analysis_coverage(newer, analysis, 0.0), "text")


def test_many_opaque_models_do_not_flood_the_screen() -> None:
    many = {
        f"m{i}": NodeAnalysis(f"m{i}", "opaque", Code.UNSUPPORTED_SQL(construct="because " * 40))
        for i in range(50)
    }
    analysis = Analysis(nodes=many, edges=[], test_columns=[], seconds={})
    lines = rendered(analysis_coverage(project(), analysis, 0.0), "text").splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) < 200
    assert "  and 30 more; --format json has all" in lines


def test_markdown() -> None:
    lines = shown("markdown").splitlines()
    assert "| analysed | 1 of 3 models (33%) |" in lines
    assert r'| `model.s.bad` | cannot find "z &#124;\\n of x" |' in lines


def test_a_project_without_models() -> None:
    empty = Project(target_path="", metadata=Metadata(), nodes={}, parents={}, children={})
    nothing = Analysis({}, [], [], {})
    assert json.loads(rendered(analysis_coverage(empty, nothing, 0.0), "json"))["models"] == 0
    assert "0 of 0 models" in rendered(analysis_coverage(empty, nothing, 0.0), "text")


# --- the command -----------------------------------------------------------------------------------


def test_on_a_real_project(shell: Shell) -> None:
    done = shell("analyze", "--format", "json")
    assert (done.code, done.err) == (0, "")
    document = done.json
    assert (document["models"], document["analysed"]) == (6, 5)
    assert [item["unique_id"] for item in document["opaque"]] == ["model.shop.py_model"]
    assert document["columns"] > 0
    assert document["edges"] > 0
    assert document["seconds"].keys() == {"read", "parse", "link"}

    text = shell("analyze")
    assert text.code == 0
    assert "5 of 6 models" in text.out
    assert "py_model" in text.out


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet", ".CSV"])
def test_edges_go_to_a_file(shell: Shell, suffix: str) -> None:
    path = shell.folder / f"edges{suffix}"
    done = shell("analyze", "--format", "json", "--edges", str(path))
    assert done.code == 0
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    elif suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        rows = list(csv.DictReader(path.open(newline="")))
    assert len(rows) == done.json["edges"]
    assert all(list(row) == list(COLUMNS) for row in rows)
    assert {
        "parent_id": "source.shop.raw.orders",
        "parent_column": "amount",
        "child_id": "model.shop.stg_orders",
        "child_column": "amount",
        "type": "DIRECT",
        "subtype": "IDENTITY",
        "masking": "false" if suffix.lower() == ".csv" else False,
        "expression": "amount",
    } in rows
    assert f"edges to {path}" in done.err


def test_parsed_but_not_compiled(shell: Shell) -> None:
    manifest = shell.folder / "target" / "manifest.json"
    content = json.loads(manifest.read_text())
    for node in content["nodes"].values():
        node.pop("compiled_code", None)
    manifest.write_text(json.dumps(content))
    assert "dbt docs generate" in shell.refused("analyze")
    assert "dbt docs generate" in shell.refused("trace", "stg_orders.amount")
    assert shell("trace", "stg_orders").code == 0  # nodes need no SQL


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("edges.xlsx", "unknown suffix"),
        ("edges", "without a suffix"),
        ("no/such/edges.csv", "no such folder"),
        (".", "without a suffix"),
    ],
)
def test_edges_that_have_nowhere_to_go(shell: Shell, file: str, says: str) -> None:
    assert says in shell.refused("analyze", "--edges", file)


def test_a_folder_in_the_files_place(shell: Shell) -> None:
    (shell.folder / "edges.csv").mkdir()
    assert "is a folder" in shell.refused("analyze", "--edges", "edges.csv")


def test_help_has_an_example(shell: Shell) -> None:
    assert "dbt-ripple analyze --edges column_edges.parquet" in shell("analyze", "--help").out


# --- the file --------------------------------------------------------------------------------------


def test_csv_and_jsonl_hold_any_name(tmp_path: Path) -> None:
    for suffix in (".csv", ".jsonl"):
        path = tmp_path / f"edges{suffix}"
        writer(path)(path, EDGES, {})
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
        if suffix == ".csv":
            rows = list(csv.DictReader(path.open(newline="")))
        else:
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["child_column"] for row in rows] == ['a "quoted", name', "*rows*"]
        path.unlink()


def test_no_edges_is_a_file_with_columns_only(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    writer(path)(path, [], {})
    table = pq.read_table(path)
    assert table.num_rows == 0
    assert table.schema.names == list(COLUMNS)
    assert table.schema.field("masking").type == pa.bool_()
    path = tmp_path / "edges.csv"
    writer(path)(path, [], {})
    assert path.read_text() == ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_what_stops_halfway_leaves_the_file_as_it_was(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"edges{suffix}"
    path.write_text("before")
    unencodable = EDGES[0]._replace(child_column="\ud800")
    with pytest.raises(UnicodeEncodeError):
        writer(path)(path, [*EDGES * 1000, unencodable], {})
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_folder_nobody_may_write_to() -> None:
    path = Path("/proc/edges.csv")
    with pytest.raises(RippleError, match="cannot be written"):
        writer(path)(path, EDGES, {})
