"""By whose rules a change is judged: base's, so that no change lets itself through.

What head says otherwise holds from the next change on, and is a finding of `policy_changed` in this one.
A project that has no rules on base is judged by head's, and so is one of which base's are not at hand;
both are said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from dbt_ripple.artifacts import Project, masking_functions
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.ripple_yml import (
    FILE,
    PROJECT_FILE,
    Config,
    exceptions_files,
    read_config,
)
from dbt_ripple.governance.rules import RULES
from dbt_ripple.graph.git import content_at, git_text
from dbt_ripple.reasons import Code, Reason

RULE: Final = "policy_changed"
_OWN: Final = "dbt_ripple"
_TARGETS: Final = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""Where CI says which branch a change is to be merged into."""
_MASKS: Final = re.compile(r"(?:\w+__)?mask(?:_\w+)?")


class Policy(NamedTuple):
    """The rules that judge, and what is to be said of them.

    Attributes:
        config: the rules.
        changes: what the change does to them: findings of `policy_changed`.
        notes: what is said besides.
    """

    config: Config
    changes: Sequence[Reason] = ()
    notes: Sequence[Reason] = ()


def rules_where_it_began(project_dir: Path, into: Path) -> Path | None:
    """The rules of the commit where the branch that is checked out left the one it is to be merged into.

    That is ``origin``'s branch which CI names, or else its default one.

    Args:
        project_dir: the project, in a checkout of git.
        into: an empty folder, for the files that say them.

    Returns:
        The folder; None where there is no such commit, or its rules cannot be read.
    """
    named = next(filter(None, map(os.environ.get, _TARGETS)), "HEAD")
    commit = git_text(project_dir, "merge-base", "HEAD", f"refs/remotes/origin/{named}")
    if not commit:
        return None
    names = [FILE, PROJECT_FILE]
    for name in names:
        content = content_at(project_dir / name, commit)
        if content is None:
            continue
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_text(content, encoding="utf-8")
        with suppress(RippleError):
            names += exceptions_files(into) if name == FILE else []
    try:
        read_config(into)
    except RippleError:
        return None
    return into


def policy_of(base_dir: Path | None, project_dir: Path) -> Policy:
    """The rules that judge a change.

    Args:
        base_dir: where base's ``ripple.yml`` and ``dbt_project.yml`` are; None where they are nowhere.
        project_dir: the project as it is proposed.

    Raises:
        RippleError: head's rules cannot be read.
    """
    head = read_config(project_dir)
    if base_dir is None or not has_rules(base_dir):
        return Policy(head, notes=[Code.POLICY_OF_HEAD()] if head != Config() else [])
    try:
        base = read_config(base_dir)
    except RippleError as error:
        return Policy(_judging_itself(head), [Code.POLICY_UNREAD(why=error.what)])
    if base == Config():
        changes = [Code.POLICY_FIRST()] if head != Config() else []
        return Policy(_judging_itself(head), changes)
    return Policy(base, [*_changes(base, head)])


def has_rules(folder: Path) -> bool:
    """Whether a folder has a file that may say rules."""
    return any((folder / name).is_file() for name in (FILE, PROJECT_FILE))


def _judging_itself(head: Config) -> Config:
    """Head's rules, but for the one about them."""
    return replace(
        head,
        levels={name: level for name, level in head.levels.items() if name != RULE},
        exceptions=tuple(one for one in head.exceptions if one.rule != RULE),
    )


def _changes(base: Config, head: Config) -> Iterator[Reason]:
    for name in RULES:
        if (was := base.level(name)) != (now := head.level(name)):
            yield Code.POLICY_LEVEL(rule=name, was=was, now=now)
        before, after = base.threshold(name), head.threshold(name)
        if before != after:
            yield Code.POLICY_ABOVE(rule=name, was=before, now=after)
    if base.required != head.required:
        yield Code.POLICY_REQUIRED(was=str(base.required), now=str(head.required))
    for one in head.exceptions:
        if one not in base.exceptions:
            yield Code.POLICY_EXCEPTED(rule=one.rule, unique_id=one.unique_id, reason=one.reason)
    for one in base.exceptions:
        if one not in head.exceptions:
            yield Code.POLICY_NOT_EXCEPTED(rule=one.rule, unique_id=one.unique_id)
    if base.hook_writes != head.hook_writes:
        yield Code.POLICY_HOOKS()


def base_masks(base: Project, head: Project) -> frozenset[str] | None:
    """The functions that mask, as base says it; None where head says the same, or base has no package."""
    before = masking_functions(base)
    if not _has_package(base) or before == masking_functions(head):
        return None
    return before


def mask_changes(base: Project, head: Project) -> Iterator[Reason]:
    """What head lets count as a mask, and base does not."""
    if not _has_package(base):
        return
    more = masking_functions(head.having(masking=None)) - masking_functions(base)
    if more:
        yield Code.POLICY_MASKING(names=sorted(more))
    for unique_id, macro in head.macros.items():
        if not _MASKS.fullmatch(macro.name):
            continue
        if macro.package_name != _OWN and "__" not in macro.name:
            continue
        then = base.macros.get(unique_id)
        if then is None or then.macro_sql.split() != macro.macro_sql.split():
            yield Code.POLICY_MASKING_MACRO(name=macro.name)


def _has_package(project: Project) -> bool:
    return f"macro.{_OWN}.mask" in project.macros or any(
        node.package_name == _OWN for node in (*project.hidden.values(), *project.nodes.values())
    )
