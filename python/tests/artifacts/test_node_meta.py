"""What a node is to the people who ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dbt_ripple.artifacts import (
    Column,
    Group,
    Metadata,
    Node,
    Project,
    TestMetadata,
    asset_type,
    column_pii,
    contract_version,
    criticality,
    has_pii,
    has_tested_key,
    is_canonical,
    is_certified,
    owner,
    read_project,
    referenced_columns,
)

FIXTURE = Path(__file__).parent / "fixtures" / "v12_dbt_1_11"


def project_of(*nodes: Node, **groups: Group) -> Project:
    return Project(
        target_path="",
        metadata=Metadata(project_name="shop"),
        nodes={node.unique_id: node for node in nodes},
        parents={},
        children={},
        groups=groups,
    )


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (Node(resource_type="source"), "table"),
        (Node(resource_type="seed"), "table"),
        (Node(resource_type="snapshot"), "table"),
        (Node(resource_type="model"), "dbt_model"),
        (Node(resource_type="model", meta={"asset_type": "dag"}), "dbt_model"),
        (Node(resource_type="exposure", type="dashboard"), "dashboard"),
        (Node(resource_type="exposure", type="notebook"), "notebook"),
        (Node(resource_type="exposure", type="analysis"), "analysis"),
        (Node(resource_type="exposure", type="application"), "application"),
        (Node(resource_type="exposure", type="ml"), "ml_model"),
        (Node(resource_type="exposure", type="ml", meta={"asset_type": "dag"}), "dag"),
        (Node(resource_type="exposure", meta={"asset_type": "ml-feature_set"}), "ml_feature_set"),
        (Node(resource_type="exposure", type="ml", meta={"asset_type": " "}), "ml_model"),
        (Node(resource_type="exposure"), "exposure"),
        (Node(resource_type="unit_test"), "unit_test"),
        (Node(resource_type="semantic_model"), "semantic_model"),
    ],
)
def test_asset_type(node: Node, kind: str) -> None:
    assert asset_type(node) == kind


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (Node(), None),
        (Node(meta={"owner": "orders team"}), "orders team"),
        (Node(meta={"owner": ["a", {"email": "b@x"}]}), "a, b@x"),
        (Node(meta={"owner": {"email": "a@x"}}), "a@x"),
        (Node(owner={"name": None, "email": ["a@x", "b@x"]}), "a@x, b@x"),
        (Node(owner={"name": "N", "email": "a@x"}, meta={"owner": "other"}), "N"),
        (Node(group="finance", meta={"owner": "other"}), "Finance data"),
        (Node(group="nobody", meta={"owner": "other"}), "other"),
        (Node(group="no such group"), None),
        (Node(meta={"owner": True}), None),
    ],
)
def test_owner(node: Node, name: str | None) -> None:
    finance = Group(name="finance", owner={"name": "Finance data", "email": "f@x"})
    nobody = Group(name="nobody", owner={"name": None, "email": None})
    assert owner(node, project_of(node, a=finance, b=nobody)) == name


def test_a_group_of_the_nodes_own_package_comes_first() -> None:
    node = Node(group="g", package_name="shop")
    other = Group(name="g", package_name="pkg", owner={"name": "theirs"})
    own = Group(name="g", package_name="shop", owner={"name": "ours"})
    assert owner(node, project_of(node, a=other, b=own)) == "ours"


@pytest.mark.parametrize(
    ("node", "version"),
    [
        (Node(), None),
        (Node(version=2), "2"),
        (Node(version="2024_1", meta={"contract_version": "9"}), "2024_1"),
        (Node(meta={"contract_version": "1.2.0"}), "1.2.0"),
        (Node(meta={"contract_version": 3}), "3"),
        (Node(meta={"contract_version": True}), None),
        (Node(meta={"contract_version": {}}), None),
    ],
)
def test_contract_version(node: Node, version: str | None) -> None:
    assert contract_version(node) == version


def test_flags_and_criticality() -> None:
    flagged = Node(meta={"criticality": "high", "certified": True, "canonical": "yes"})
    assert (criticality(flagged), is_certified(flagged), is_canonical(flagged)) == (
        "high",
        True,
        True,
    )
    other = Node(meta={"criticality": 1, "certified": "no", "canonical": 1})
    assert (criticality(other), is_certified(other), is_canonical(other)) == ("1", False, False)
    assert (criticality(Node()), is_certified(Node()), is_canonical(Node())) == (None, False, False)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (Column(), None),
        (Column(meta={"pii": "email"}), "email"),
        (Column(meta={"pii": True}), "pii"),
        (Column(meta={"pii": False}, tags=["pii"]), None),
        (Column(meta={"pii": "None"}), None),
        (Column(tags=["PII"]), "pii"),
        (Column(tags=["key"]), None),
    ],
)
def test_pii(column: Column, kind: str | None) -> None:
    assert column_pii(column) == kind
    assert has_pii(Node(columns={"id": Column(), "x": column})) is (kind is not None)
    assert has_pii(Node(meta=column.meta, tags=column.tags)) is (kind is not None)


@pytest.mark.parametrize(
    ("listed", "columns"),
    [
        (None, None),
        (["a", "m.b"], ["a", "m.b"]),
        ("a", ["a"]),
        ([], []),
        ({"m": ["a", "b"], "n": "c"}, ["m.a", "m.b", "n.c"]),
        (3, None),
    ],
)
def test_referenced_columns(listed: Any, columns: list[str] | None) -> None:
    assert referenced_columns(Node(meta={"referenced_columns": listed})) == columns


def test_on_a_real_project() -> None:
    project = read_project(FIXTURE)
    exposure = project.nodes["exposure.shop.daily_revenue_report"]
    assert asset_type(exposure) == "dag"
    assert owner(exposure, project) == "Finance data"
    assert referenced_columns(exposure) == ["amount"]
    dim = project.nodes["model.shop.dim_customers.v2"]
    assert (owner(dim, project), contract_version(dim)) == ("Finance data", "2")
    assert is_certified(dim)
    source = project.nodes["source.shop.raw.orders"]
    assert owner(source, project) == "platform"
    assert has_pii(source)


# --- keys -----------------------------------------------------------------------------------------


def _project_of(model: Node, *tests: Node) -> Project:
    return Project(
        target_path="target",
        metadata=Metadata(),
        nodes={node.unique_id: node for node in (model, *tests)},
        parents={},
        children={model.unique_id: [test.unique_id for test in tests]},
    )


def _test_of(kind: str, *, attached: str | None = "model.p.m", **kwargs: Any) -> Node:
    return Node(
        unique_id=f"test.p.{kind}.{kwargs}",
        resource_type="test",
        attached_node=attached,
        column_name=kwargs.get("column_name"),
        test_metadata=TestMetadata(name=kind, kwargs=kwargs),
    )


UNIQUE = _test_of("unique", column_name="id")
NOT_NULL = _test_of("not_null", column_name="ID")
PAIR = _test_of("unique_combination_of_columns", combination_of_columns=["id", "`day`"])


@pytest.mark.parametrize(
    ("tests", "tested"),
    [
        ([], False),
        ([UNIQUE], False),
        ([NOT_NULL], False),
        ([UNIQUE, NOT_NULL], True),
        ([UNIQUE, _test_of("not_null", column_name="day")], False),
        ([PAIR, NOT_NULL], False),
        ([PAIR, NOT_NULL, _test_of("not_null", column_name="day")], True),
        ([_test_of("unique_together", columns=["id"]), NOT_NULL], True),
        ([_test_of("expect_compound_columns_to_be_unique", column_list=["id"]), NOT_NULL], True),
        ([_test_of("unique", attached="model.p.other", column_name="id"), NOT_NULL], False),
        ([Node(unique_id="test.p.singular", resource_type="test"), UNIQUE, NOT_NULL], True),
    ],
)
def test_a_key_is_tested_to_be_unique_and_never_null(tests: list[Node], tested: bool) -> None:
    model = Node(unique_id="model.p.m", resource_type="model")
    assert has_tested_key(model, _project_of(model, *tests)) is tested


def test_constraints_count_where_the_contract_is_enforced() -> None:
    model = Node(
        unique_id="model.p.m",
        columns={"id": Column(name="id", constraints=[{"type": "not_null"}])},
    )
    assert not has_tested_key(model, _project_of(model, UNIQUE))
    model = replace(model, config={"contract": {"enforced": True}})
    assert has_tested_key(model, _project_of(model, UNIQUE))
    key = [{"type": "primary_key", "columns": ["id"]}]
    model = replace(model, columns={}, constraints=key)
    assert has_tested_key(model, _project_of(model, UNIQUE))
