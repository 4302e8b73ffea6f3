"""The rule `tags_required`: which tags a project asks for, of which of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dbt_ripple.artifacts import (
    Node,
    Project,
    contract_version,
    criticality,
    did_you_mean,
    domain,
    is_canonical,
    is_certified,
    is_own,
    is_public,
    owner,
    owner_channel,
    owner_email,
    owner_name,
)
from dbt_ripple.changes import Comparison
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.contracts import Breach
from dbt_ripple.reasons import Code

Required = Mapping[str, Sequence[str]]
"""The tags that are asked for, by what they are asked of: ``{"tier1": ["owner"]}``."""

TAGS: Final[dict[str, Callable[[Node, Project], str | None]]] = {
    "owner": owner,
    "owner_name": owner_name,
    "owner_email": owner_email,
    "owner_channel": owner_channel,
    "domain": domain,
    "contract_version": lambda node, _: contract_version(node),
    "criticality": lambda node, _: criticality(node),
    "description": lambda node, _: (node.description or "").strip() or None,
}
"""What can be asked for; the model `tags_required` of the dbt package reads columns of these names."""

_KINDS: Final = ("model", "seed", "snapshot", "source", "exposure")
_FLAGS: Final[dict[str, Callable[[Node], bool]]] = {
    "certified": is_certified,
    "canonical": is_canonical,
    "public": is_public,
}
_TIERS: Final = ("tier1", "tier2", "tier3")
OF: Final = ("all", *_TIERS, *_FLAGS, *_KINDS)
"""What tags can be asked of: everything, a criticality, a flag of `meta`, or a resource type."""


def read_required(content: Mapping[str, Any], where: str) -> dict[str, list[str]]:
    """What a file asks for.

    Raises:
        RippleError: it asks for what is no tag, or of what there is not.
    """
    tags_of = {}
    for of, tags in content.items():
        names = [tags] if isinstance(tags, str) else tags
        if of not in OF:
            raise _unknown(f"tags_required knows no {of!r}", of, OF, where)
        if not isinstance(names, list):
            raise RippleError(
                f"tags_required of {of} is no list", where, "list tags: [owner, contract_version]"
            )
        for tag in names:
            if tag not in TAGS:
                raise _unknown(f"tags_required knows no tag {tag!r}", str(tag), TAGS, where)
        tags_of[str(of)] = names
    return tags_of


def _unknown(
    problem: str, name: str, choices: Sequence[str] | Mapping[str, Any], where: str
) -> RippleError:
    return RippleError(problem, where, did_you_mean(name, [*choices], f"say {', '.join(choices)}"))


def tag_breaches(comparison: Comparison, required: Required) -> Iterator[Breach]:
    """Nodes of the project without a tag that is asked of them."""
    if not required:
        return
    base, head = comparison.base, comparison.head
    for unique_id, node in head.nodes.items():
        then = base.nodes.get(unique_id)
        before = dict(missing(then, base, required)) if then is not None else {}
        for tag, of in missing(node, head, required):
            reason = Code.TAG_MISSING(tag=tag, of=of)
            old = tag in before
            because = Code.ALREADY_ON_BASE(because=reason) if old else reason
            yield Breach("tags_required", unique_id, None, because, old=old)


def missing(node: Node, project: Project, required: Required) -> Iterator[tuple[str, str]]:
    """The tags that a node lacks, each with what it is asked of."""
    if node.resource_type not in _KINDS or not is_own(node, project):
        return
    reported: set[str] = set()
    for of, tags in required.items():
        if not _is(node, of):
            continue
        for tag in tags:
            if tag not in reported and TAGS[tag](node, project) is None:
                reported.add(tag)
                yield tag, of


def _is(node: Node, of: str) -> bool:
    if of in _TIERS:
        return (criticality(node) or "").lower() == of
    if flag := _FLAGS.get(of):
        return flag(node)
    return of in ("all", node.resource_type)
