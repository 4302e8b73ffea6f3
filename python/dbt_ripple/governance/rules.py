"""The registry of the gate's rules: what each requires, and its default level."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Level = Literal["off", "warn", "block"]

LEVELS: Final[tuple[Level, ...]] = ("off", "warn", "block")
"""From harmless to grave."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule.

    Attributes:
        level: what it is where ripple.yml says nothing of it. Out of the box only what is certain
            blocks: a reader that is broken, a name or a type that was promised and is not there.
        asks: what must be so, in one sentence.
        above: the threshold where it has one: a finding is what is above it.
        approval: whether somebody may say yes to a finding (``--approved-by``).
    """

    name: str
    level: Level
    asks: str
    above: int | None = None
    approval: bool = False

    @property
    def page(self) -> str:
        """The page in the repository that explains it."""
        return f"docs/rules/{self.name}.md"


_ALL: Final = (
    Rule(
        name="policy_changed",
        level="warn",
        asks="The rules, exceptions and masking functions stay as they are; base's judge a change of them.",
    ),
    Rule(
        name="column_removed",
        level="block",
        asks="A public or contracted relation keeps its columns until its contract_version changes.",
    ),
    Rule(
        name="column_renamed",
        level="block",
        asks="A public or contracted relation keeps the names of its columns until its "
        "contract_version changes.",
    ),
    Rule(
        name="column_retyped",
        level="block",
        asks="A public or contracted relation keeps the types of its columns until its "
        "contract_version changes.",
    ),
    Rule(
        name="column_redefined",
        level="warn",
        asks="A column of a public or contracted relation means the same, down to the sources, "
        "until its contract_version changes.",
    ),
    Rule(
        name="contract_version_without_migration",
        level="warn",
        asks="Who changes a contract_version says how to migrate.",
    ),
    Rule(
        name="promise_lowered",
        level="warn",
        asks="An enforced contract and the access of a model stay, and it does not end earlier than announced.",
    ),
    Rule(
        name="owner_missing",
        level="warn",
        asks="Every model, seed, snapshot and source has an owner.",
    ),
    Rule(
        name="tags_required",
        level="block",
        asks="What ripple.yml or the var ripple_rules asks to be tagged has these tags.",
    ),
    Rule(name="owner_removed", level="warn", asks="What had an owner keeps one."),
    Rule(
        name="tier1_key_untested",
        level="warn",
        asks="The key of a tier-1 relation is tested to be unique and not null.",
    ),
    Rule(
        name="pii_untagged",
        level="warn",
        asks="A column that personal data reaches is tagged so, or declassified with a reason.",
    ),
    Rule(
        name="pii_exposed",
        level="warn",
        asks="No personal data reaches an exposure that is public.",
    ),
    Rule(
        name="pii_tag_removed",
        level="warn",
        asks="What is tagged as personal data stays tagged, and nothing is newly declassified.",
    ),
    Rule(
        name="lineage_broken",
        level="block",
        asks="What the tests comes_from and not_from ask of a column's lineage holds.",
    ),
    Rule(
        name="reader_broken",
        level="block",
        asks="Nothing reads a column that is not there.",
    ),
    Rule(
        name="syntax_error",
        level="block",
        asks="What is edited is SQL that its engine can parse.",
    ),
    Rule(
        name="unread_sql",
        level="warn",
        asks="What is edited and cannot be parsed here is known to build.",
    ),
    Rule(
        name="unjudged_code",
        level="warn",
        asks="What is edited compiles to the same everywhere, and names what it reads.",
    ),
    Rule(
        name="semantic_removed",
        level="warn",
        asks="What the semantic layer declares stays: metrics, dimensions and saved queries are asked "
        "for from outside of the project.",
    ),
    Rule(
        name="duplicate_introduced",
        level="warn",
        asks="No column computes what a column of another model computes already.",
    ),
    Rule(
        name="canonical_bypassed",
        level="warn",
        asks="Who reads a column that a canonical model has, too, reads it there.",
    ),
    Rule(
        name="blast_radius",
        level="warn",
        asks="A change that reaches more assets than are allowed is looked at, or approved, by somebody.",
        above=0,
        approval=True,
    ),
    Rule(
        name="certified_reached",
        level="warn",
        asks="A change that reaches a certified or tier-1 asset is looked at, or approved, by "
        "somebody.",
        approval=True,
    ),
    Rule(
        name="source_drift",
        level="warn",
        asks="A source has the columns and types it had, and those its declaration says.",
    ),
)

RULES: Final[dict[str, Rule]] = {rule.name: rule for rule in _ALL}
"""Every rule by name, in the order findings are listed."""
