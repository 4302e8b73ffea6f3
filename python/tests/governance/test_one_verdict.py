"""What cannot be built is found once for a comparison, whoever asks; and the two sides are compared once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hand_made import check, node, project

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.assets_file import parse_assets
from dbt_ripple.changes import compare
from dbt_ripple.changes import verdict as of_verdict
from dbt_ripple.changes.asset_changes import with_declared_assets
from dbt_ripple.changes.diff import diff
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.governance.gate import GateAnswer, gate_from
from dbt_ripple.governance.ripple_yml import Config
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.broken_nodes import BrokenNodeFinder
from dbt_ripple.graph.target_folder import TargetFolder
from dbt_ripple.rendering.gate import rendered_gate
from dbt_ripple.selection.explain import explain, explain_node
from dbt_ripple.selection.select import select_from
from dbt_ripple.session.sides import Sides

RAW, STG, MART, TOP = "source.p.raw", "model.p.stg", "model.p.mart", "model.p.top"
LISTED = {RAW: ["id", "amount"]}


def shop(stg: str = "amount") -> Project:
    return project(
        node(RAW),
        node(STG, f"select id, {stg} from s.raw", RAW),
        node(MART, "select id, amount from s.stg", STG),
        node(TOP, "select id from s.mart", MART),
        check("own", "select * from s.stg where amount < 0", STG),
        check("below", "select * from s.top where id < 0", TOP),
        catalog=LISTED,
    )


RENAMED = "amount as total"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often what finds it is called."""
    calls: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        was: Callable[..., Any] = getattr(owner, name)

        @wraps(was)
        def of(*arguments: Any, **more: Any) -> Any:
            calls[name if name != "__init__" else owner.__name__] += 1
            return was(*arguments, **more)

        monkeypatch.setattr(owner, name, of)

    counted(BrokenNodeFinder, "__init__")
    counted(of_verdict, "syntax_errors")
    counted(of_verdict, "fail_again")
    counted(of_verdict, "vanished")
    counted(of_verdict, "read_on_base")
    return calls


def test_every_question_takes_the_verdict_that_is_there(made: Counter[str]) -> None:
    comparison = compare(shop(), shop(RENAMED))
    assert comparison.made == {}  # while it is compared, what differs is not settled
    selection = select_from(comparison)
    assert [one.unique_id for one in selection.blocked] == ["test.p.below"]
    # One in the analysis of head, and one for what certainly cannot be built.
    assert made.pop("BrokenNodeFinder") == 2
    assert made == {"syntax_errors": 1, "fail_again": 1, "vanished": 1, "read_on_base": 1}
    made.clear()
    answer = GateAnswer(gate_from(comparison, Config()), comparison, selection)
    for style in ("text", "json", "markdown", "github", "sarif"):
        assert list(rendered_gate(answer, style, Path()))
    assert [one.unique_id for one in diff(comparison).broken] == [MART, "test.p.own"]
    assert diff(comparison) is diff(comparison)
    nodes = comparison.head.nodes
    assert explain(comparison, selection, nodes["test.p.own"]).broken is not None
    assert explain_node(comparison, nodes[MART], None).broken is not None
    assert made == {}


def test_with_declared_assets_the_verdict_on_dbt_is_the_same(made: Counter[str]) -> None:
    comparison = compare(shop(), shop(RENAMED))
    text = "assets:\n  - id: dashboard:d\n    dialect: duckdb\n    sql: select amount from s.stg\n"
    assets = parse_assets(text, "ripple_assets.yml")
    sides = [
        DeclaredGraph(comparison.base, assets),
        DeclaredGraph(comparison.head, assets, formerly=comparison.base),
    ]
    whole = with_declared_assets(comparison, *sides)
    select_from(comparison)
    made.clear()
    own, verdict = verdict_of(comparison), verdict_of(whole)
    assert verdict.refused is own.refused and verdict.failing is own.failing
    assert verdict.syntax_errors is own.syntax_errors and verdict.vanished is own.vanished
    assert made == {}
    (dashboard,) = verdict.broken.keys() - own.broken.keys()
    assert str(verdict.broken[dashboard].reason).endswith("stg.amount is gone (renamed to total)")


def test_a_selection_is_made_once_however_many_tests_are_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    selected: list[object] = []

    def count(*arguments: Any, **more: Any) -> Any:
        selected.append(more)
        return select_from(*arguments, **more)

    monkeypatch.setattr("dbt_ripple.selection.select.select_from", count)
    sides = Sides(
        tmp_path, *(TargetFolder.of(side) for side in (shop(), shop(RENAMED))), None, None
    )
    assert sides.select() is sides.select()
    assert [sides.explain(test)[0].verdict for test in ("own", "below")] == ["selected", "blocked"]
    assert len(selected) == 1
    assert sides.select(facts=False) is not sides.select()
    assert [test.unique_id for test in sides.select(only={MART}).tests] == []
    assert len(selected) == 3


def test_a_gate_compares_once_whatever_masks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compared: list[object] = []

    def count(*arguments: Any, **more: Any) -> Any:
        compared.append(arguments)
        return compare(*arguments, **more)

    monkeypatch.setattr("dbt_ripple.changes.compare", count)
    monkeypatch.setattr(
        "dbt_ripple.governance.policy.base_masks", lambda base, head: frozenset({"token"})
    )
    folders = [TargetFolder.of(side, None) for side in (shop(), shop(RENAMED))]
    sides = Sides(tmp_path, *folders, None, None)
    answer = sides.gate(with_tests=True)
    assert answer.selection is not None and answer.selection.broken
    assert [one.unique_id for one in sides.judged.diff().broken] == [MART, "test.p.own"]
    assert len(compared) == 1
