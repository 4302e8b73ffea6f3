"""The document that all pages read: it says what the artifacts and the analysis say, once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hostile_project
import msgspec
import pytest
from hand_made import generic, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project, RunResult, Timing, read_project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.traversal import count_below, reach
from dbt_ripple.pages.describe_project import describe_project
from dbt_ripple.pages.project_document import DescribedColumn, ProjectDocument

RAW = "source.p.raw.people"
STG, FCT = "model.p.stg", "model.p.fct"


def described(*nodes: Node, earlier: tuple[Project, ...] = (), **fields: Any) -> ProjectDocument:
    made = project(*nodes, catalog={RAW: ["id", "email", "age"]})
    made = made.having(**fields) if fields else made
    return describe_project(made, analyse(made, expressions=True), earlier)


def people() -> Node:
    source = node(RAW, columns={"id": "bigint", "email": "string", "age": "int"})
    source.columns["email"] = replace(source.columns["email"], meta={"pii": "email"})
    return source


def shop() -> list[Node]:
    stg = node(
        STG, "select id, email as mail, age + 1 as next_age from s.people where age > 3", RAW
    )
    stg = replace(
        stg,
        meta={
            "owner": {"name": "ann", "email": "ann@x.example"},
            "slack": "#data",
            "domain": "crm",
        },
    )
    fct = node(FCT, "select sha2(mail, 256) as hashed, mail from s.stg", STG)
    fct = replace(
        fct,
        meta={"criticality": "tier1", "certified": True, "domain": "crm", "contract_version": 2},
    )
    report = node("exposure.p.report", None, FCT)
    report = replace(report, meta={"referenced_columns": ["fct.mail"]})
    test = generic("t", "not_null", "select mail from s.fct where mail is null", FCT, tags=["slo"])
    return [people(), stg, fct, report, test]


def column(document: ProjectDocument, unique_id: str, name: str) -> DescribedColumn:
    return next(c for c in document.nodes[unique_id].columns if c.name == name)


def result(unique_id: str, status: str, day: int) -> RunResult:
    at = datetime(2026, 1, day, tzinfo=UTC)
    return RunResult(unique_id=unique_id, status=status, timing=[Timing(completed_at=at)])


def test_where_a_column_comes_from_and_what_it_feeds() -> None:
    document = described(*shop())
    into = document.links_into[FCT, "mail"]
    assert [(link.parent, [k.subtype for k in link.kinds]) for link in into] == [
        ((STG, "mail"), ["IDENTITY"])
    ]
    assert into[0].is_value
    filters = document.links_into[STG, "*rows*"]
    assert {link.parent for link in filters} == {(RAW, "*rows*"), (RAW, "age")}
    assert not any(link.is_value for link in filters)
    assert [link.child for link in document.links_out_of[FCT, "mail"]] == [
        ("exposure.p.report", "mail")
    ]
    assert column(document, STG, "next_age").expression == "age + 1"
    assert column(document, STG, "mail").expression is None
    assert column(document, RAW, "age").type == "int"


def test_people_promises_and_personal_data() -> None:
    document = described(*shop())
    stg, fct = document.nodes[STG], document.nodes[FCT]
    assert (stg.owner, stg.owner_email, stg.owner_channel) == ("ann", "ann@x.example", "#data")
    assert (fct.criticality, fct.certified, fct.contract_version) == ("tier1", True, "2")
    pii = column(document, FCT, "mail").pii
    assert pii is not None
    assert (pii.origin, pii.pii, pii.source_id) == ("inherited", "email", RAW)
    assert column(document, FCT, "hashed").pii is None


def test_the_blast_radius_is_what_a_trace_reaches() -> None:
    document = described(*shop())
    assert document.nodes[RAW].blast_radius == 3
    assert document.nodes[FCT].blast_radius == 1
    assert column(document, FCT, "mail").blast_radius == 1
    # Nobody lists it, but the exposure reads the rows, and they do not depend on it.
    assert column(document, FCT, "hashed").blast_radius == 0
    # It filters, so that everything below changes with it.
    assert column(document, RAW, "age").blast_radius == 3


def test_of_a_cycle_each_vertex_counts_once() -> None:
    graph = {0: [1], 1: [2, 3], 2: [0], 3: [4], 5: [4, 5]}
    counts = count_below(graph, of=lambda vertex: vertex)
    for vertex in range(6):
        assert counts.get(vertex, 0) == len(reach(vertex, graph)) - 1, vertex


def test_who_may_read_is_told_from_who_reads() -> None:
    silent = node("exposure.p.silent", None, FCT)
    document = described(*shop(), silent)
    links = {link.child_id: link.may_read for link in document.links_out_of[FCT, "mail"]}
    assert links == {"exposure.p.report": False, "exposure.p.silent": True}


def test_runs_of_all_artifacts_at_hand() -> None:
    nodes = shop()
    now = [result(FCT, "error", 4), result("test.p.t", "fail", 4)]
    before = project(*nodes).having(
        run_results=[result(FCT, "success", 2), result(STG, "success", 3)]
    )
    document = described(*nodes, earlier=(before,), run_results=now)
    fct = document.nodes[FCT]
    assert fct.last_run is not None
    assert (fct.last_run.status, fct.last_run.succeeded) == ("error", False)
    assert fct.last_success == datetime(2026, 1, 2, tzinfo=UTC)
    assert document.nodes[STG].last_success == datetime(2026, 1, 3, tzinfo=UTC)
    assert (fct.slos.met, fct.slos.violated) == (0, 1)
    assert document.domains["crm"].slos.share == 0.0
    assert fct.tests == ("test.p.t",)
    assert column(document, FCT, "mail").tests == ("test.p.t",)
    assert column(document, FCT, "hashed").tests == ()


def test_what_was_only_compiled_is_no_run() -> None:
    compiled = {"run_results": [result(FCT, "success", 2)], "run_args": {"which": "generate"}}
    document = described(*shop(), **compiled)
    assert document.nodes[FCT].last_success is None
    assert document.nodes[FCT].last_run is None


def test_versions_of_a_contract() -> None:
    def at(day: int, *versions: str) -> Project:
        made = project(
            *(
                node(
                    f"model.p.dim.v{v}",
                    "select 1 as id",
                    version=v,
                    latest_version="2",
                )
                for v in versions
            )
        )
        for one in made.nodes.values():
            made.nodes[one.unique_id] = replace(one, name="dim")
        moment = datetime(2026, 1, day, tzinfo=UTC)
        return made.having(metadata=msgspec.structs.replace(made.metadata, generated_at=moment))

    today = at(5, "2", "3")
    document = describe_project(today, analyse(today), [at(3, "1", "2"), at(1, "1")])
    history = document.nodes["model.p.dim.v3"].contract_versions
    told = [
        (v.version, v.since and v.since.day, v.until and v.until.day, v.is_latest) for v in history
    ]
    assert sorted(told) == [("1", None, 5, False), ("2", 3, None, True), ("3", 5, None, False)]
    assert history == document.nodes["model.p.dim.v2"].contract_versions


def test_health_of_the_project_and_its_domains() -> None:
    opaque = node("model.p.py", None, RAW, language="python", meta={"domain": "ml"})
    certified = node(
        "model.p.below", "select 1 as n from s.py", "model.p.py", meta={"certified": True}
    )
    document = described(*shop(), opaque, certified)
    health = document.health
    assert (health.covered_nodes, health.nodes) == (3, 4)
    assert health.node_coverage == 0.75
    assert (health.tier1_column_coverage, health.tier1_node_coverage) == (1.0, 1.0)
    assert (health.complete_nodes, health.certified_nodes) == (1, 2)
    assert document.domains["ml"].node_coverage == 0.0
    # Nobody reads `below`; who reads `raw.people` cannot be followed, nor what is made of its own.
    assert health.unknown_downstreams == 2
    assert not document.nodes["model.p.below"].path_is_complete


def test_layers() -> None:
    staged = node("model.p.staged", "select 1 as a")
    staged = replace(staged, fqn=["p", "staging", "crm", "staged"])
    said = node("model.p.said", "select 1 as a", meta={"layer": "gold"})
    plain = node("model.p.plain", "select 1 as a")
    document = described(people(), staged, said, plain)
    assert {n.name: n.layer for n in document.nodes.values()} == {
        "people": "source",
        "staged": "staging",
        "said": "gold",
        "plain": "model",
    }


def test_the_same_artifacts_give_the_same_document() -> None:
    documents = {msgspec.json.encode(described(*shop())) for _ in range(2)}
    assert len(documents) == 1
    decoded = msgspec.json.decode(documents.pop(), type=ProjectDocument)
    assert decoded == described(*shop())


@pytest.mark.parametrize("name", ["</script><script>x", 'a"b', "\u202etxt", "é🎉", "n" * 500])
def test_names_come_through_as_they_are(tmp_path: Path, name: str) -> None:
    manifest = hostile_project.project(lambda tame: f"{name}{tame}", head=False)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    made = read_project(tmp_path)
    document = describe_project(made, analyse(made, expressions=True))
    names = {node.name for node in document.nodes.values()}
    assert f"{name}m_fct" in names
    ends = {end for link in document.links for end in (link.parent, link.child)}
    known = {(n.unique_id, c.name) for n in document.nodes.values() for c in n.columns}
    assert {end for end in ends if end[1] != "*rows*"} <= known


def test_no_end_of_a_link_is_unknown() -> None:
    document = described(*shop())
    ids = set(document.nodes)
    assert {link.child_id for link in document.links} <= ids
    assert {link.parent_id for link in document.links} <= ids
    assert {p for n in document.nodes.values() for p in (*n.parents, *n.children)} <= ids
