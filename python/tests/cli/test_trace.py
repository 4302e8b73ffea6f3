"""`dbt-ripple trace`, on a project compiled by dbt 1.11 and on graphs made by hand."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli_shell import FIXTURE, Shell
from msgspec.structs import replace

from dbt_ripple.artifacts import Metadata, Node, Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.rendering.escaping import line as printed
from dbt_ripple.rendering.trace import column_view, node_view, render


def shop(**children: list[str]) -> Project:
    """A project of models, but for names that say what they are."""
    names = list(
        dict.fromkeys([*children, *(c for children_of in children.values() for c in children_of)])
    )
    nodes = {}
    for name in names:
        if name.startswith("raw"):
            node = Node(name=name, resource_type="source", source_name="raw")
        elif name.endswith("report"):
            node = Node(name=name, resource_type="exposure", meta={"asset_type": "dag"})
        elif name.startswith("test"):
            node = Node(name=name, resource_type="test")
        else:
            node = Node(name=name, resource_type="model")
        node = replace(node, unique_id=name)
        nodes[name] = node
    parents: dict[str, list[str]] = {name: [] for name in names}
    for parent, children_of in children.items():
        for child in children_of:
            parents[child].append(parent)
    return Project(
        target_path="",
        metadata=Metadata(project_name="shop"),
        nodes=nodes,
        parents=parents,
        children={name: children.get(name, []) for name in names},
    )


def tree(
    project: Project, root: str, direction: str = "downstream", depth: int | None = None
) -> str:
    view = node_view(project, project.nodes[root], direction, depth, include_tests=False)  # type: ignore[arg-type]
    return "\n".join(printed(line, colours=True) for line in render(view, "tree"))


# --- nodes -----------------------------------------------------------------------------------------


def test_the_tree_of_the_issue() -> None:
    project = shop(
        raw_orders=["stg_orders"],
        stg_orders=["fct_orders"],
        fct_orders=["daily_revenue_report", "customer_ltv_model"],
    )
    job = project.nodes["customer_ltv_model"]
    job = project.nodes["customer_ltv_model"] = replace(
        job, resource_type="exposure", meta={"asset_type": "spark_job"}
    )
    assert tree(project, "raw_orders") == "\n".join(
        [
            "\x1b[36mTABLE\x1b[0m raw_orders",
            "└── \x1b[36mDBT_MODEL\x1b[0m stg_orders",
            "    └── \x1b[36mDBT_MODEL\x1b[0m fct_orders",
            "        ├── \x1b[36mDAG\x1b[0m daily_revenue_report",
            "        └── \x1b[36mSPARK_JOB\x1b[0m customer_ltv_model",
        ]
    )


def test_no_colours_where_no_terminal(shell: Shell) -> None:
    done = shell("trace", "raw.orders", "--depth", "2")
    assert done.code == 0
    assert done.out.splitlines() == [
        "TABLE orders",
        "└── DBT_MODEL stg_orders",
        "    ├── DBT_MODEL eph_orders",
        "    ├── DBT_MODEL py_model",
        "    ├── TABLE orders_snapshot",
        "    ├── ANALYSIS how_many",
        "    └── SEMANTIC_MODEL orders",
    ]
    assert done.err == ""
    assert shell("trace", "raw.orders", "--depth", "2", "--format", "text").out == done.out


def plain(text: str) -> list[str]:
    return text.replace("\x1b[36m", "").replace("\x1b[2m", "").replace("\x1b[0m", "").splitlines()


def test_a_node_reached_twice_is_expanded_once() -> None:
    project = shop(raw=["a", "b"], a=["c"], b=["c"], c=["d"])
    assert plain(tree(project, "raw")) == [
        "TABLE raw",
        "├── DBT_MODEL a",
        "│   └── DBT_MODEL c",
        "│       └── DBT_MODEL d",
        "└── DBT_MODEL b",
        "    └── DBT_MODEL c (see above)",
    ]


def test_the_order_does_not_depend_on_the_manifest() -> None:
    one = shop(raw=["b", "a", "z_report"], a=["c"])
    other = shop(a=["c"], raw=["z_report", "a", "b"])
    assert tree(one, "raw") == tree(other, "raw")


def test_the_busiest_branch_comes_first() -> None:
    project = shop(raw=["a", "b", "c_report"], a=["x"], b=["y", "z"])
    assert plain(tree(project, "raw")) == [
        "TABLE raw",
        "├── DBT_MODEL b",
        "│   ├── DBT_MODEL y",
        "│   └── DBT_MODEL z",
        "├── DBT_MODEL a",
        "│   └── DBT_MODEL x",
        "└── DAG c_report",
    ]


def test_an_incremental_model_that_reads_itself() -> None:
    edges = [
        ColumnEdge("raw", "x", "inc", "x", "DIRECT", "IDENTITY", False),
        ColumnEdge("inc", "x", "inc", "x", "DIRECT", "AGGREGATION", False),
    ]
    analysis = Analysis({}, edges, [], {})
    project = shop(raw=["inc"])
    view = column_view(project, analysis, project.nodes["raw"], "x", "downstream", None)
    assert list(map(printed, render(view, "tree"))) == [
        "TABLE raw.x",
        "└── DBT_MODEL inc.x  DIRECT IDENTITY",
        "    └── DBT_MODEL inc.x  DIRECT AGGREGATION (see above)",
    ]


def test_directions_and_depth() -> None:
    project = shop(raw=["a"], a=["b"], b=["x_report"])
    assert plain(tree(project, "b", "upstream", 1)) == ["DBT_MODEL b", "└── DBT_MODEL a"]
    assert plain(tree(project, "b", "both")) == [
        "upstream:",
        "DBT_MODEL b",
        "└── DBT_MODEL a",
        "    └── TABLE raw",
        "",
        "downstream:",
        "DBT_MODEL b",
        "└── DAG x_report",
    ]
    assert plain(tree(project, "raw", "downstream", 0)) == ["TABLE raw"]


def test_tests_are_hidden_unless_asked_for(shell: Shell) -> None:
    assert "TEST" not in shell("trace", "stg_orders").out
    done = shell("trace", "stg_orders", "--include-tests")
    assert "TEST no_negative_amount" in done.out
    assert "UNIT_TEST amounts_are_summed" in done.out
    # A test is shown when it is what was asked for.
    done = shell("trace", "no_negative_amount", "-d", "upstream")
    assert done.out.splitlines()[:2] == ["TEST no_negative_amount", "└── DBT_MODEL stg_orders"]


def test_json_has_the_shape_of_the_issue(shell: Shell) -> None:
    done = shell("trace", "eph_orders", "--format", "json", "--direction", "both", "--depth", "1")
    fields = ["root", "direction", "depth", "nodes", "edges"]
    assert list(done.json) == ["schema_version", *fields]
    assert done.json == {
        "schema_version": 1,
        "root": "model.shop.eph_orders",
        "direction": "both",
        "depth": 1,
        "nodes": [
            {
                "unique_id": "model.shop.eph_orders",
                "name": "eph_orders",
                "resource_type": "model",
                "depth": 0,
            },
            {
                "unique_id": "model.shop.stg_orders",
                "name": "stg_orders",
                "resource_type": "model",
                "depth": 1,
            },
            {
                "unique_id": "model.shop.dim_customers.v1",
                "name": "dim_customers.v1",
                "resource_type": "model",
                "depth": 1,
            },
            {
                "unique_id": "model.shop.dim_customers.v2",
                "name": "dim_customers.v2",
                "resource_type": "model",
                "depth": 1,
            },
        ],
        "edges": [
            {"from": "model.shop.stg_orders", "to": "model.shop.eph_orders"},
            {"from": "model.shop.eph_orders", "to": "model.shop.dim_customers.v1"},
            {"from": "model.shop.eph_orders", "to": "model.shop.dim_customers.v2"},
        ],
    }
    assert shell("trace", "eph_orders", "--format", "json").json["depth"] is None


def test_mermaid_is_safe_whatever_the_names() -> None:
    project = shop(raw=['end"]; <b>#1</b>'], **{'end"]; <b>#1</b>': ["x_report"]})
    view = node_view(project, project.nodes["raw"], "downstream", None, include_tests=False)
    assert render(view, "mermaid") == [
        "flowchart LR",
        '  n0[("TABLE<br/>raw")]',
        '  n1["DBT_MODEL<br/>end#34;#93;#59; #60;b#62;#35;1#60;#47;b#62;"]',
        '  n2(["DAG<br/>x_report"])',
        "  n0 --> n1",
        "  n1 --> n2",
        "  style n0 stroke-width:4px",
    ]


def test_markdown(shell: Shell) -> None:
    done = shell("trace", "dim_customers", "--direction", "both", "--format", "markdown")
    assert done.out.splitlines() == [
        "### Upstream of `dim_customers.v2`",
        "",
        "- DBT_MODEL `dim_customers.v2`",
        "  - DBT_MODEL `eph_orders`",
        "    - DBT_MODEL `stg_orders`",
        "      - TABLE `orders`",
        "  - TABLE `countries`",
        "",
        "### Downstream of `dim_customers.v2`",
        "",
        "- DBT_MODEL `dim_customers.v2`",
        "  - DAG `daily_revenue_report`",
    ]


def test_a_chain_may_be_longer_than_pythons_stack() -> None:
    project = shop(**{f"m{i}": [f"m{i + 1}"] for i in range(3000)})
    for style in ("tree", "json", "mermaid", "markdown"):
        view = node_view(project, project.nodes["m0"], "downstream", None, include_tests=False)
        assert any("m3000" in line for line in render(view, style))


def test_a_node_alone(shell: Shell) -> None:
    nothing = "(nothing downstream; left out: tests)"
    assert shell("trace", "time_spine").out == f"DBT_MODEL time_spine\n└── {nothing}\n"
    alone = shell("trace", "time_spine", "--include-tests", "--format", "markdown").out
    assert alone.endswith("- DBT_MODEL `time_spine`\n  - (nothing downstream)\n")
    above = shell("trace", "raw_orders", "--direction", "upstream").out
    assert above.endswith("└── (nothing upstream)\n")
    assert shell("trace", "time_spine", "--depth", "0").out == "DBT_MODEL time_spine\n"
    assert shell("trace", "time_spine", "--format", "json").json["edges"] == []


# --- columns ---------------------------------------------------------------------------------------

EDGES = [
    ColumnEdge("raw", "amount", "stg", "amount", "DIRECT", "IDENTITY", False),
    ColumnEdge("raw", "status", "stg", ROWS, "INDIRECT", "FILTER", False),
    ColumnEdge("stg", ROWS, "fct", ROWS, "DIRECT", "IDENTITY", False),
    ColumnEdge("stg", "amount", "fct", "total", "DIRECT", "AGGREGATION", False),
    ColumnEdge("stg", "amount", "fct", "total", "INDIRECT", "CONDITIONAL", True),
    ColumnEdge("fct", "total", "x_report", "total", "DIRECT", "IDENTITY", False),
]


def seen(unique_id: str, *columns: str) -> NodeAnalysis:
    return NodeAnalysis(unique_id, "analysed", columns=list(columns))


ANALYSIS = Analysis(
    nodes={
        "raw": seen("raw", "amount", "status"),
        "stg": seen("stg", "amount"),
        "fct": seen("fct", "total", "Currency"),
    },
    edges=EDGES,
    test_columns=[],
    seconds={},
)


def column(root: str, name: str, style: str, direction: str = "downstream") -> str:
    project = shop(raw=["stg"], stg=["fct"], fct=["x_report"])
    node = project.nodes[root]
    view = column_view(project, ANALYSIS, node, name, direction, None)  # type: ignore[arg-type]
    return "\n".join(map(printed, render(view, style)))


def test_a_column_downstream() -> None:
    assert plain(column("raw", "amount", "tree")) == [
        "TABLE raw.amount",
        "└── DBT_MODEL stg.amount  DIRECT IDENTITY",
        "    └── DBT_MODEL fct.total  DIRECT AGGREGATION, INDIRECT CONDITIONAL",
        "        └── DAG x_report.total  DIRECT IDENTITY",
    ]


def test_a_column_that_decides_rows() -> None:
    assert plain(column("raw", "status", "tree")) == [
        "TABLE raw.status",
        "└── DBT_MODEL stg (rows)  INDIRECT FILTER",
        "    └── DBT_MODEL fct (rows)  DIRECT IDENTITY",
    ]
    assert plain(column("fct", ROWS, "tree", "upstream")) == [
        "DBT_MODEL fct (rows)",
        "└── DBT_MODEL stg (rows)  DIRECT IDENTITY",
        "    └── TABLE raw.status  INDIRECT FILTER",
    ]


def test_a_column_in_json(shell: Shell) -> None:
    done = shell("trace", "dim_customers.amount", "-d", "upstream", "--format", "json")
    assert done.json["root"] == "model.shop.dim_customers.v2"
    assert done.json["column"] == "amount"
    assert done.json["nodes"][-1] == {
        "unique_id": "source.shop.raw.orders",
        "name": "orders",
        "resource_type": "source",
        "depth": 3,
        "column": "amount",
    }
    assert done.json["edges"][0] == {
        "from": "model.shop.eph_orders",
        "to": "model.shop.dim_customers.v2",
        "from_column": "amount",
        "to_column": "amount",
        "type": "DIRECT",
        "subtype": "AGGREGATION",
        "masking": False,
    }


def test_a_column_in_mermaid() -> None:
    assert column("raw", "status", "mermaid").splitlines() == [
        "flowchart LR",
        '  n0[("TABLE<br/>raw.status")]',
        '  n1["DBT_MODEL<br/>stg (rows)"]',
        '  n2["DBT_MODEL<br/>fct (rows)"]',
        '  n0 -.->|"INDIRECT FILTER"| n1',
        '  n1 -->|"DIRECT IDENTITY"| n2',
        "  style n0 stroke-width:4px",
    ]


def test_a_column_in_markdown() -> None:
    assert column("stg", "amount", "markdown").splitlines()[3] == (
        "  - DBT_MODEL `fct.total` (DIRECT AGGREGATION, INDIRECT CONDITIONAL)"
    )


def test_columns_are_found_without_regard_to_case() -> None:
    assert plain(column("fct", "CURRENCY", "tree"))[0] == "DBT_MODEL fct.Currency"


@pytest.mark.parametrize(
    ("root", "name", "says"),
    [
        ("raw", "amout", "did you mean amount?"),
        ("raw", "qqqq", "it has amount, status"),
        ("x_report", "qqqq", "it has total"),
    ],
)
def test_an_unknown_column(root: str, name: str, says: str) -> None:
    with pytest.raises(RippleError, match="has no column of this name") as caught:
        column(root, name, "tree")
    assert caught.value.fix == says


def test_a_column_of_a_node_without_any() -> None:
    project = shop(raw=["stg"])
    with pytest.raises(RippleError, match=r"catalog\.json"):
        empty = Analysis({}, [], [], {})
        column_view(project, empty, project.nodes["raw"], "x", "downstream", None)


# --- the command -----------------------------------------------------------------------------------


def test_bad_names_are_one_line(shell: Shell) -> None:
    assert "did you mean stg_orders" in shell.refused("trace", "stg_order")
    assert "did you mean amount" in shell.refused("trace", "stg_orders.amuont")
    assert "retired is disabled" in shell.refused("trace", "retired")


def test_where_the_project_is(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "target").rename(shell.folder / "elsewhere")
    assert "no such folder" in shell.refused("trace", "stg_orders")
    assert shell("trace", "stg_orders", "--target-path", "elsewhere").code == 0
    assert shell("trace", "stg_orders", "--target-path", str(FIXTURE)).code == 0
    (shell.folder / "dbt_project.yml").write_text("name: shop\ntarget-path: 'elsewhere'  # moved\n")
    assert shell("trace", "stg_orders").code == 0
    monkeypatch.setenv("DBT_TARGET_PATH", "nowhere")
    assert "nowhere" in shell.refused("trace", "stg_orders")
    monkeypatch.chdir("/")
    monkeypatch.setenv("DBT_TARGET_PATH", "elsewhere")
    monkeypatch.setenv("DBT_PROJECT_DIR", str(shell.folder))
    assert shell("trace", "stg_orders").code == 0
    other = ("--project-dir", str(shell.folder / "other"))
    assert "other" in shell.refused("trace", "stg_orders", *other)


def test_help_has_an_example(shell: Shell) -> None:
    done = shell("trace", "--help")
    assert "dbt-ripple trace raw_orders" in done.out


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    main = [sys.executable, "-c", "from dbt_ripple.cli import main; main()"]
    return subprocess.run(
        [*main, *arguments], env=os.environ | env, capture_output=True, check=False
    )


def test_an_encoding_without_line_drawing() -> None:
    done = run("trace", "stg_orders", "--target-path", str(FIXTURE), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"|-- DBT_MODEL eph_orders" in done.stdout
    assert b"`-- ANALYSIS how_many" in done.stdout


def test_help_is_quick_to_start() -> None:
    heavy = "{'sqlglot', 'pyarrow', 'rich', 'pyspark', 'dbt', 'msgspec'}"
    code = (
        "import sys\nfrom dbt_ripple.cli import main\nsys.argv = ['dbt-ripple', '--help']\n"
        f"try: main()\nexcept SystemExit: pass\nassert not {heavy} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_tracing_nodes_needs_no_sql() -> None:
    arguments = f"['dbt-ripple', 'trace', 'stg_orders', '--target-path', {str(FIXTURE)!r}]"
    code = (
        f"import sys\nfrom dbt_ripple.cli import main\nsys.argv = {arguments}\nmain_ = main\n"
        "try: main_()\nexcept SystemExit: pass\n"
        "assert not {'sqlglot', 'pyarrow', 'rich'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
