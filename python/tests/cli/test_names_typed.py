"""Names on the command line: dbt's selection grammar, files, and + around a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_shell import Shell
from hand_made import check, node, project
from msgspec.structs import replace
from two_sides import FROM_RAW, STG, Sides

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.artifacts.node_selection import named, selected
from dbt_ripple.errors import RippleError


@pytest.fixture(scope="module")
def shop() -> Project:
    def model(name: str, folder: str, *parents: str, **more: object) -> object:
        made = node(f"model.p.{name}", "select 1", *parents, **more)
        return replace(
            made,
            fqn=["p", *folder.split("/"), name],
            original_file_path=f"models/{folder}/{name}.sql",
        )

    raw = node("source.p.raw.orders", source_name="raw", original_file_path="models/s.yml")
    report = node("exposure.p.report", None, "model.p.fct")
    return project(
        raw,
        model("stg", "staging", "source.p.raw.orders", tags=["nightly"]),
        model("int", "staging/more", "model.p.stg", config={"materialized": "view"}),
        model("fct", "marts", "model.p.int", access="public", patch_path="p://models/marts/m.yml"),
        model("other", "marts", tags=["nightly", "slow"], group="finance"),
        model("joined", "marts", "model.p.fct", "model.p.other"),
        report,
        check("on_stg", "select 1", "model.p.stg", original_file_path="models/m.yml"),
    )


def names(project: Project, *select: str, exclude: tuple[str, ...] = ()) -> str:
    selection = selected(project, select, exclude)
    return " ".join(u.rpartition(".")[2] for u in project.nodes if u in selection)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("stg", "stg"),
        ("p.staging", "stg int"),
        ("staging", "stg int"),
        ("staging.stg", "stg"),
        ("p.marts.*", "fct other joined"),
        ("st?", "stg"),
        ("fct other", "fct other"),
        ("tag:nightly,marts", "other"),
        ("tag:night*", "stg other"),
        ("models/staging", "stg int"),
        ("models/staging/stg.sql", "stg"),
        ("path:models/*/fct.sql", "fct"),
        ("models/marts/m.yml", "fct"),
        ("stg.sql", "stg"),
        ("file:stg", "stg"),
        ("source:raw", "orders"),
        ("source:raw.orders+1", "orders stg"),
        ("source:p.raw.*", "orders"),
        ("exposure:report", "report"),
        ("+exposure:*", "orders stg int fct report"),
        ("resource_type:exposure", "report"),
        ("package:p,resource_type:source", "orders"),
        ("config.materialized:view", "int"),
        ("access:public", "fct"),
        ("group:finance", "other"),
        ("1+fct", "int fct"),
        ("2+fct+1", "stg int fct joined report"),
        ("+fct", "orders stg int fct"),
        ("@stg", "orders stg int fct other joined report on_stg"),
    ],
)
def test_what_a_spec_selects(shop: Project, spec: str, expected: str) -> None:
    assert names(shop, spec) == expected


def test_what_is_excluded(shop: Project) -> None:
    assert names(shop, "marts", exclude=("joined", "tag:slow")) == "fct"
    assert "stg" not in names(shop, exclude=("stg",)).split()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("state:modified+", "dbt answers state: from more than the manifest"),
        ("result:fail", "dbt answers result:"),
        ("tagg:x", "did you mean tag:?"),
        ("materialized:view", "is no method"),
        ("sgt", "did you mean stg"),
        ("tag:nigthly", "did you mean nightly"),
        ("models/staging/sgt.sql", "did you mean models/staging/stg.sql"),
    ],
)
def test_what_is_not_understood_is_reported_with_the_nearest(
    shop: Project, spec: str, message: str
) -> None:
    with pytest.raises(RippleError) as refused:
        selected(shop, [spec])
    assert message in str(refused.value)
    assert str(refused.value).count("\n") == 0


def test_a_name_that_looks_like_grammar_is_that_name() -> None:
    odd = ["@all", "+up", "down+", "a*", "tag:x", "1+2"]
    side = project(*(node(f"model.p.{name}", "select 1") for name in odd))
    for name in odd:
        node_named, column, asked = named(side, name)
        assert (node_named.name, column, asked.up, asked.down) == (name, None, None, None)
    assert named(side, "+down++")[0].name == "down+"


def test_the_nodes_that_dbt_selects(tmp_path: Path) -> None:
    """The same specs, asked of dbt's own matching of full names."""
    methods = pytest.importorskip("dbt.graph.selector_methods")
    from cli_shell import FIXTURE

    real = read_project(FIXTURE)
    specs = {part for n in real.nodes.values() for part in n.fqn} | {
        *("*", "stg*", "shop.*", "*.v2", "shop.dim_customers.v1", "dim_customers_v2"),
        *("dim_customers.v2", "dim_*", "?tg_orders", "nothing", "shop"),
    }
    asked = methods.QualifiedNameSelectorMethod.node_is_match
    for spec in specs:
        if "+" in spec or ":" in spec:
            continue
        theirs = {
            u
            for u, n in real.nodes.items()
            if n.resource_type != "source"
            and n.fqn
            and asked(None, spec, n.fqn, n.version is not None)
        }
        try:
            ours = selected(real, [f"fqn:{spec}"])
        except RippleError:
            ours = set()
        assert ours == theirs, spec


# --- in the commands -------------------------------------------------------------------------------


def test_plus_around_a_name_says_which_way(shell: Shell) -> None:
    for spec, *flags in (
        ("+stg_orders", "--direction", "upstream"),
        ("stg_orders+", "--direction", "downstream"),
        ("+stg_orders+", "--direction", "both"),
        ("1+dim_customers.v2", "--direction", "upstream", "--depth", "1"),
        ("stg_orders.amount+1", "--direction", "downstream", "--depth", "1"),
    ):
        name = spec.strip("+").removeprefix("1+").removesuffix("+1")
        assert shell("trace", spec).out == shell("trace", name, *flags).out, spec
    assert "give one of them" in shell.refused("trace", "+stg_orders", "-d", "downstream")
    assert "one depth for both ways" in shell.refused("trace", "1+stg_orders+2")
    assert "@" in shell.refused("trace", "@stg_orders")


def test_a_file_is_the_node_it_defines(shell: Shell) -> None:
    by_name = shell("trace", "stg_orders").out
    path = next(
        n.original_file_path
        for u, n in read_project(shell.folder / "target").nodes.items()
        if u == STG
    )
    for typed in (path, f"./{path}", Path(path).name, f"path:{path}", "stg_order?", f"{path}+"):
        assert shell("trace", typed).out == by_name, typed
    assert shell("trace", f"+{path}").out == shell("trace", "+stg_orders").out
    file = shell.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    assert shell("trace", str(file)).out == by_name  # however it is typed, where it is there
    drop = ("--drop", "amount", "--format", "json")
    assert shell("impact", path, *drop).json == shell("impact", "stg_orders", *drop).json
    assert shell("impact", "stg_orders+", *drop).json == shell("impact", "stg_orders", *drop).json
    assert "who reads stg_orders" in shell("impact", "+stg_orders", *drop).err


def test_a_spec_of_several_nodes_is_refused_with_their_names(shell: Shell) -> None:
    output = shell.refused("trace", "dim_customers*")
    assert "selects 2 nodes: dim_customers.v1, dim_customers.v2" in output
    assert "did you mean stg_orders" in shell.refused("trace", "models/stg_order.sql")


def test_a_trace_shows_only_what_leads_to_what_is_selected(shell: Shell) -> None:
    whole = shell("trace", "raw.orders", "--format", "json").json
    part = shell(
        "trace", "raw.orders", "--select", "resource_type:exposure", "--format", "json"
    ).json
    ids = {n["unique_id"] for n in part["nodes"]}
    assert ids < {n["unique_id"] for n in whole["nodes"]}
    exposures = {n["unique_id"] for n in whole["nodes"] if n["resource_type"] == "exposure"}
    assert exposures <= ids
    ends = ids - {edge["from"] for edge in part["edges"]}
    assert ends == exposures
    without = shell("trace", "raw.orders", "--exclude", "resource_type:exposure").out
    assert "daily_revenue_report" not in without


def test_a_diff_of_a_part(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    assert sides("diff", "--select", "stg_orders").out.startswith("stg_orders (changed)\n")
    message = "nothing of what is selected by name changed\n"
    assert sides("diff", "--select", "time_spine").out == message
    assert "did you mean stg_orders" in sides.refused("diff", "--select", "stg_order")
