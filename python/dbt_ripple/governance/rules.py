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
        counted: how findings are counted in a headline: a noun, and what is so of each.
        to_do: what to do about one; None where what is broken is mended where it is.
    """

    name: str
    level: Level
    asks: str
    above: int | None = None
    approval: bool = False
    counted: tuple[str, str] | None = None
    to_do: str | None = None

    @property
    def page(self) -> str:
        """The page in the repository that explains it."""
        return f"docs/rules/{self.name}.md"


_CONTRACT: Final = (
    "leave it as it was, or raise the contract version and say in `meta.migration` how to migrate"
)

_ALL: Final = (
    Rule(
        name="policy_changed",
        level="warn",
        asks="The rules, exceptions and masking functions stay as they are; base's judge a change of them.",
        counted=("rule or exception", "changed"),
        to_do="let who answers for the rules look at it",
    ),
    Rule(
        name="column_removed",
        level="block",
        asks="A public or contracted relation keeps its columns until its contract_version changes.",
        counted=("promised column", "removed"),
        to_do=_CONTRACT,
    ),
    Rule(
        name="column_renamed",
        level="block",
        asks="A public or contracted relation keeps the names of its columns until its "
        "contract_version changes.",
        counted=("promised column", "renamed"),
        to_do=_CONTRACT,
    ),
    Rule(
        name="column_retyped",
        level="block",
        asks="A public or contracted relation keeps the types of its columns until its "
        "contract_version changes.",
        counted=("promised column", "of another type"),
        to_do=_CONTRACT,
    ),
    Rule(
        name="column_redefined",
        level="warn",
        asks="A column of a public or contracted relation means the same, down to the sources, "
        "until its contract_version changes.",
        counted=("promised column", "redefined"),
        to_do=_CONTRACT,
    ),
    Rule(
        name="contract_version_without_migration",
        level="warn",
        asks="Who changes a contract_version says how to migrate.",
        counted=("contract version", "without a word on migration"),
        to_do="say in `meta.migration` how to migrate",
    ),
    Rule(
        name="promise_lowered",
        level="warn",
        asks="An enforced contract and the access of a model stay, and it does not end earlier than announced.",
        counted=("promise", "taken back"),
        to_do="ask who relies on it",
    ),
    Rule(
        name="owner_missing",
        level="warn",
        asks="Every model, seed, snapshot and source has an owner.",
        counted=("node", "without an owner"),
        to_do="name an owner",
    ),
    Rule(
        name="tags_required",
        level="block",
        asks="What ripple.yml or the var ripple_rules asks to be tagged has these tags.",
        counted=("node", "without a tag that is asked for"),
        to_do="tag it as the rules ask",
    ),
    Rule(
        name="owner_removed",
        level="warn",
        asks="What had an owner keeps one.",
        counted=("node", "left without an owner"),
        to_do="name an owner",
    ),
    Rule(
        name="tier1_key_untested",
        level="warn",
        asks="The key of a tier-1 relation is tested to be unique and not null.",
        counted=("tier-1 key", "untested"),
        to_do="test its key with `unique` and `not_null`",
    ),
    Rule(
        name="pii_untagged",
        level="warn",
        asks="A column that personal data reaches is tagged so, or declassified with a reason.",
        counted=("untagged column", "with personal data"),
        to_do="tag it with `meta.pii`, or declassify it with a reason",
    ),
    Rule(
        name="pii_exposed",
        level="warn",
        asks="No personal data reaches an exposure that is public.",
        counted=("public column", "with personal data"),
        to_do="mask it, or take it out of what is public",
    ),
    Rule(
        name="pii_tag_removed",
        level="warn",
        asks="What is tagged as personal data stays tagged, and nothing is newly declassified.",
        counted=("column", "no longer tagged as personal data"),
        to_do="tag it again, or let who answers for personal data look at it",
    ),
    Rule(
        name="lineage_broken",
        level="block",
        asks="What the tests comes_from and not_from ask of a column's lineage holds.",
        counted=("column", "whose lineage is not what a test asks"),
        to_do="compute it from what the test names, or change the test with who declared it",
    ),
    Rule(
        name="reader_broken",
        level="block",
        asks="Nothing reads a column that is not there.",
        counted=("reader", "broken"),
    ),
    Rule(
        name="syntax_error",
        level="block",
        asks="What is edited is SQL that its engine can parse.",
        counted=("query", "with a syntax error"),
        to_do="mend the SQL (`dbt compile` passes, because it does not parse it)",
    ),
    Rule(
        name="unread_sql",
        level="warn",
        asks="What is edited and cannot be parsed here is known to build.",
        counted=("query", "that could not be read"),
        to_do="build it once: what it changes is only known roughly",
    ),
    Rule(
        name="unjudged_code",
        level="warn",
        asks="What is edited compiles to the same everywhere, and names what it reads.",
        counted=("edit", "that is not judged in full"),
        to_do="look at it by hand",
    ),
    Rule(
        name="semantic_removed",
        level="warn",
        asks="What the semantic layer declares stays: metrics, dimensions and saved queries are asked "
        "for from outside of the project.",
        counted=("semantic-layer element", "removed or renamed"),
        to_do="ask who queries it from outside, dashboards among them",
    ),
    Rule(
        name="duplicate_introduced",
        level="warn",
        asks="No column computes what a column of another model computes already.",
        counted=("column", "computed in two places"),
        to_do="read the other model's column instead",
    ),
    Rule(
        name="canonical_bypassed",
        level="warn",
        asks="Who reads a column that a canonical model has, too, reads it there.",
        counted=("reader", "past what is canonical"),
        to_do="read the canonical model instead",
    ),
    Rule(
        name="blast_radius",
        level="warn",
        asks="A change that reaches more assets than are allowed is looked at, or approved, by somebody.",
        above=0,
        approval=True,
        to_do="look at what reads it",
    ),
    Rule(
        name="certified_reached",
        level="warn",
        asks="A change that reaches a certified or tier-1 asset is looked at, or approved, by "
        "somebody.",
        approval=True,
        counted=("certified or tier-1 asset", "reached"),
        to_do="look at what reads it",
    ),
    Rule(
        name="source_drift",
        level="warn",
        asks="A source has the columns and types it had, and those its declaration says.",
        counted=("source column", "not as declared"),
        to_do="look at the source, and mend its declaration",
    ),
)

RULES: Final[dict[str, Rule]] = {rule.name: rule for rule in _ALL}
"""Every rule by name, in the order findings are listed."""
