"""Two sides of a comparison, open: what can be asked of the change from base to head."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_ripple.session.assets import with_assets_of_both_sides
from dbt_ripple.session.open_artifacts import open_joined
from dbt_ripple.session.typed_names import as_typed

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes import Comparison
    from dbt_ripple.changes.diff import Diff
    from dbt_ripple.governance.gate import GateAnswer
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.reasons import Reason
    from dbt_ripple.selection.explain import Explanation
    from dbt_ripple.selection.result import Selection


@dataclass
class Sides:
    """Base and head, and what is asked of the change between them.

    Attributes:
        project_dir: the project.
        base: base's artifacts.
        head: head's.
        cache: where to look first.
        threads: processes that analyse what is not there.
        others: artifacts of other projects, which read what this one builds.
        base_ref: the commit of base, in place of artifacts.
    """

    project_dir: Path
    base: TargetFolder
    head: TargetFolder
    cache: Cache | None
    threads: int | None
    others: Sequence[Path] = ()
    base_ref: str | None = None
    _selections: dict[tuple[object, ...], Selection] = field(default_factory=dict, init=False)

    @cached_property
    def comparison(self) -> Comparison:
        """Base and head, compared; without declared assets."""
        from dbt_ripple.changes import compare

        comparison = compare(
            self.base.project,
            self.head.project,
            base_analysis=self.base.analysis(),
            head_analysis=self.head.analysis(),
            cache=self.cache,
        )
        comparison.project_dir = self.head.project_dir
        return comparison

    @cached_property
    def whole(self) -> Comparison:
        """The same with the declared and collected assets of both."""
        return with_assets_of_both_sides(self.comparison, self.base, self.head, self.cache)

    @property
    def shown(self) -> Project:
        """Head, with what has a name in answers."""
        return self.whole.head if self.head.declared else self.head.project

    def select(
        self,
        *,
        critical: str | None = None,
        only: set[str] | None = None,
        facts: bool = True,
        assume_passed: bool = False,
    ) -> Selection:
        """The tests that the change can break, and what has to be built for them.

        Args:
            critical: the tier all tests of which are added below the change.
            only: unique_ids outside of which nothing is selected.
            facts: whether tests are left out that base's passed tests prove.
            assume_passed: whether all tests of base count as passed.
        """
        from dbt_ripple.changes.asset_changes import read_by_change
        from dbt_ripple.selection.select import select_from

        asked = (critical, None if only is None else frozenset(only), facts, assume_passed)
        if asked in self._selections:
            return self._selections[asked]
        selection = self._selections[asked] = select_from(
            self.comparison,
            critical=critical,
            only=only,
            facts=facts,
            assume_passed=assume_passed,
        )
        if self.head.declared:
            selection.assets = read_by_change(self.whole, only)
        return selection

    def gate(self, approved_by: str | None = None, *, with_tests: bool = False) -> GateAnswer:
        """Judge the change by base's rules.

        Args:
            approved_by: who says yes to what needs approval.
            with_tests: whether the answer has the tests that the change can break, too.

        Raises:
            RippleError: ripple.yml is not valid.
        """
        from dbt_ripple.governance.gate import GateAnswer, gate_from
        from dbt_ripple.governance.policy import has_rules, policy_of, rules_where_it_began

        with tempfile.TemporaryDirectory() as began:
            rules = self.base.project_dir
            if self.base_ref is None and rules is not None and not has_rules(rules):
                rules = rules_where_it_began(self.project_dir, Path(began))
            policy = policy_of(rules, self.project_dir)
        judged = self.judged
        joined = open_joined(
            *(judged.head, self.others, self.cache, self.threads, judged.comparison.base)
        )
        report = gate_from(judged.whole, policy, approved_by, joined)
        selection = judged.select(critical=policy.config.critical) if with_tests else None
        return GateAnswer(report, judged.whole, selection, joined=joined)

    @cached_property
    def judged(self) -> Sides:
        """What the gate judges: the same, with what masks as base says it; both know the packages of their repository."""
        from dbt_ripple.governance.policy import base_masks
        from dbt_ripple.governance.ripple_yml import local_packages
        from dbt_ripple.graph.target_folder import TargetFolder

        own = local_packages(self.project_dir)
        if own:
            for side in (self.base, self.head):
                side.project = side.project.having(local_packages=own)
        masks = base_masks(self.base.project, self.head.project)
        if masks is None:
            return self
        project = self.head.project.having(masking=masks)
        head = TargetFolder.of(project, self.head.cache, processes=self.head.processes)
        head.declared = self.head.declared
        return Sides(
            *(self.project_dir, self.base, head, self.cache, self.threads),
            *(self.others, self.base_ref),
        )

    def explain(
        self, what: str, *, facts: bool = True, assume_passed: bool = False
    ) -> tuple[Explanation, Sequence[Reason]]:
        """Why a test is selected, or a node or a column differs, or why not; and what that assumes.

        Args:
            what: a test, a node, or a column after its node and a dot.
            facts: as for `select`, like the next one.
            assume_passed: see there.

        Raises:
            RippleError: there is none of this name, or several; the nearest are given.
        """
        from dbt_ripple.selection.explain import TESTS, explain, explain_node, find

        node, column = find(self.head.project, as_typed(what, self.project_dir))
        if node.resource_type not in TESTS:
            return explain_node(self.comparison, node, column), self.comparison.notes
        selection = self.select(
            critical=tier_asked(None, self.project_dir), facts=facts, assume_passed=assume_passed
        )
        return explain(self.comparison, selection, node), selection.notes

    def diff(self) -> Diff:
        """What changed, column by column."""
        from dbt_ripple.changes.diff import diff

        return diff(self.comparison)

    def nothing_changed(self, chosen: bool) -> str:
        """What people are told where nothing is selected; `chosen`: whether by name."""
        from dbt_ripple.changes.comparison import NOTHING_TO_DO, nothing_changed

        return nothing_changed(self.comparison) or (
            "nothing of what is selected by name changed" if chosen else NOTHING_TO_DO
        )


def tier_asked(critical: str | None, project_dir: Path) -> str | None:
    """A tier as it is asked for, or that of ripple.yml; None for ``none``."""
    from dbt_ripple.governance.ripple_yml import read_config

    if critical is None:
        return read_config(project_dir).critical
    return None if critical.lower() == "none" else critical
