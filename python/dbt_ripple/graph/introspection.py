"""Nodes whose Jinja queries the warehouse while it compiles (rule 11).

Such a node compiles to another text when the result of that query changes, so its compiled SQL
alone proves nothing. What it may query is found in its own Jinja and in the macros it calls. If a
macro is not known to query less, that is everything in the node's refs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from jinja2 import nodes

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.macros import APPLY_TAGS, INTERNAL, Macros, dispatched
from dbt_ripple.graph.unnamed_reads import CATALOG, words_of_names
from dbt_ripple.jinja.facts import Facts, facts_of, facts_without
from dbt_ripple.jinja.kept import cached_method
from dbt_ripple.jinja.text import in_tags, without_tags


class IntrospectedParts(IntEnum):
    """How much of its refs a node queries; each sees what the ones before it see, too."""

    NOTHING = 0
    NAMES = 1
    """The names of their columns, in order."""
    COLUMNS = 2
    """Their columns with their types."""
    EVERYTHING = 3


@dataclass(frozen=True, slots=True)
class WarehouseReads:
    """What a node queries in the warehouse while it compiles.

    Attributes:
        parts: how much of all its refs.
        values: ``(ref, column)`` for each column whose distinct values it asks for.
        exist: whether it asks if relations exist, and of which kind they are.
    """

    parts: IntrospectedParts
    values: tuple[tuple[str, str], ...] = ()
    exist: bool = False

    def __bool__(self) -> bool:
        return self.parts > IntrospectedParts.NOTHING or bool(self.values) or self.exist


NOTHING: Final = WarehouseReads(IntrospectedParts.NOTHING)


class NamesInJinja(NamedTuple):
    """What a node's Jinja says that may be the name of a relation which it queries.

    Attributes:
        words: in its SQL and its strings (see `unnamed_reads.words_of_names`), those of each text apart.
        catalog: whether it reads the warehouse's own list of relations.
        columns: whether it reads there which columns they have.
    """

    words: frozenset[frozenset[str]]
    catalog: bool
    columns: bool


_EVERYTHING: Final = frozenset(
    """
    context list_relations_without_caching load_result run_query statement
    """.split()
)
"""Names whose use in Jinja may show anything."""

_EXIST: Final = frozenset({"get_relation", "load_cached_relation", "load_relation"})
"""What gives a relation of the warehouse, or none where there is no such."""

_OF_A_RELATION: Final = frozenset({"information", "metadata", "stats", "to_dict"})
"""What some adapters know of a relation that they gave besides its name and its kind."""

_BENIGN: Final = frozenset(
    "behavior can_on_schema_change config convert_type dispatch quote quote_as_configured "
    "quote_seed_column type valid_incremental_strategies Relation".split()
)
"""Of ``adapter``, what asks the warehouse nothing."""

_TYPES: Final = frozenset(
    """
    char_size column_type data_type dtype expanded_data_type is_float is_integer is_number
    is_numeric is_string numeric_precision numeric_scale quoted_data_type string_size
    """.split()
)
"""What Jinja asks a column for beyond its name."""

_INTERNAL: Final = {
    "get_columns_in_relation": IntrospectedParts.NAMES,
    "get_limit_subquery_sql": IntrospectedParts.NOTHING,
    "get_where_subquery": IntrospectedParts.NOTHING,
    "is_incremental": IntrospectedParts.NOTHING,
    "should_full_refresh": IntrospectedParts.NOTHING,
    "should_store_failures": IntrospectedParts.NOTHING,
}
"""dbt's own macros that are known to show less than their text could; ``is_incremental`` only asks
whether the model exists."""

_SIGNS: Final = (
    "adapter",
    "context",
    "get_column",
    "get_relation",
    "load_",
    "run_query",
    "statement",
)
"""One of these is in every text that queries the warehouse by itself."""

_WITHOUT_VALUES: Final = frozenset({"default", "max_records"})
"""Arguments of ``get_column_values`` that say nothing of which values are asked for."""


class Introspection:
    """What each node of one project queries while it compiles."""

    def __init__(self, project: Project, macros: Macros) -> None:
        self.macros = macros
        self.project = project

    def of(self, node: Node) -> WarehouseReads:
        """What a node queries, as far as its own Jinja and the macros it reaches tell."""
        # The same for all tests of one kind.
        return self._looks(node.raw_code, tuple(node.depends_on.macros))

    @cached_method
    def _looks(self, raw: str, reached: tuple[str, ...]) -> WarehouseReads:
        # Nearly every text queries nothing, which is found out faster than it is parsed.
        if not _has_a_sign(raw):
            called = [u for u in reached if dispatched(u.rpartition(".")[2]) in raw]
            called += [u for u in reached if u.split(".")[1] not in INTERNAL or ".test_" in u]
            if not any(any(self.of_macro(unique_id)[:2]) for unique_id in called):
                return NOTHING
        facts = facts_of(raw)
        values: tuple[tuple[str, str], ...] = ()
        if "get_column_values" in facts.words:
            facts, values = without_column_values(raw)
        shown = _shown(facts)
        for unique_id in reached:
            macro = self.macros.macros.get(unique_id)
            if macro is None or unique_id == APPLY_TAGS:
                continue
            plain = dispatched(macro.name)
            if values and macro.package_name == "dbt_utils" and plain == "get_column_values":
                if "get_column_values" not in facts.words:
                    continue
            elif (
                macro.package_name in INTERNAL
                and not macro.name.startswith("test_")
                and facts.words.isdisjoint((plain, macro.name))
            ):
                continue  # dbt notes what a materialization called, once the node has run
            shown |= self.of_macro(unique_id)
        parts = shown.parts
        if shown.exist and shown.of_relation:
            parts = IntrospectedParts.EVERYTHING
        elif parts == IntrospectedParts.NAMES and shown.types:
            parts = IntrospectedParts.COLUMNS
        return WarehouseReads(parts, values, shown.exist and parts != IntrospectedParts.EVERYTHING)

    def named(self, node: Node) -> NamesInJinja:
        """The names of relations in the strings and the SQL of a node's Jinja and of its macros.

        A relation that is only named in a string is no parent to dbt.
        """
        return self._named((node.raw_code, *self.macros.texts_of(node.depends_on.macros)))

    @cached_method
    def _named(self, texts: tuple[str, ...]) -> NamesInJinja:
        in_texts = [_names_in(text) for text in texts]
        return NamesInJinja(
            frozenset[frozenset[str]]().union(*(names.words for names in in_texts)),
            any(names.catalog for names in in_texts),
            any(names.columns for names in in_texts),
        )

    @cached_method
    def of_macro(self, unique_id: str) -> _Shown:
        """What a macro shows, with all it calls."""
        shown = _Shown()
        seen: set[str] = set()
        stack = [unique_id]
        while stack:
            current = stack.pop()
            macro = self.macros.macros.get(current)
            if macro is None or current in seen:
                continue
            seen.add(current)
            less = _INTERNAL.get(dispatched(macro.name)) if macro.package_name in INTERNAL else None
            if less is not None:
                shown |= _Shown(less)
                continue
            if _MAY_SHOW.search(
                macro.macro_sql
            ):  # hardly any does, and the others need not be parsed
                shown |= _shown(self.macros.facts(current))
            stack += macro.depends_on.macros
            stack += self.macros.users_by_name.get(dispatched(macro.name), ())
        return shown


def _has_a_sign(raw: str) -> bool:
    if not any(sign in raw for sign in _SIGNS):
        return False
    tags = in_tags(raw)
    return any(sign in tags for sign in _SIGNS)


class _Shown(NamedTuple):
    """What a piece of Jinja, taken alone, may query.

    Attributes:
        parts: how much of refs.
        exist: whether it asks if relations exist.
        of_relation: whether it asks for what some adapters know of a relation besides.
        types: whether it asks a column for more than its name.
    """

    parts: IntrospectedParts = IntrospectedParts.NOTHING
    exist: bool = False
    of_relation: bool = False
    types: bool = False

    def __or__(self, other: _Shown) -> _Shown:
        return _Shown(*map(max, self, other))  # type: ignore[arg-type]


def _shown(facts: Facts) -> _Shown:
    """What a piece of Jinja with these facts may query."""
    parts = IntrospectedParts.NOTHING
    if (
        not facts.readable
        or not facts.words.isdisjoint(_EVERYTHING)
        or any(
            "adapter" in use.path
            and _SHOWS_NO_MORE.isdisjoint(use.path[use.path.index("adapter") + 1 :][:1])
            for use in facts.uses
        )
    ):
        parts = IntrospectedParts.EVERYTHING
    elif "get_columns_in_relation" in facts.words:
        parts = IntrospectedParts.NAMES
    return _Shown(
        parts,
        not facts.words.isdisjoint(_EXIST),
        not facts.words.isdisjoint(_OF_A_RELATION),
        not facts.said.isdisjoint(_TYPES),
    )


_MAY_SHOW: Final = re.compile("|".join(sorted({*_SIGNS, *_EVERYTHING, *_OF_A_RELATION, *_TYPES})))
"""Letters of which some are in each text that `_shown` says anything of."""
_SHOWS_NO_MORE: Final = _BENIGN | {"get_columns_in_relation", "get_relation"}


def without_column_values(raw: str) -> tuple[Facts, tuple[tuple[str, str], ...]]:
    """What a text uses besides calls of ``get_column_values`` for one column of one ref, and these.

    Returns:
        Its other facts; and ``(ref, column)`` of each such call.
    """
    values: dict[tuple[str, str], None] = {}

    def is_one(call: nodes.Call) -> bool:
        if getattr(call.node, "attr", getattr(call.node, "name", "")) != "get_column_values":
            return False
        given = dict(zip(("table", "column"), call.args, strict=False))
        given |= {keyword.key: keyword.value for keyword in call.kwargs}
        all_named = len(given) == len(call.args) + len(call.kwargs)
        if not all_named or call.dyn_args or call.dyn_kwargs:
            return False
        match given.pop("table", None), given.pop("column", None):
            case (
                nodes.Call(
                    node=nodes.Name(name="ref"), args=[nodes.Const(value=str(name))], kwargs=[]
                ),
                nodes.Const(value=column),
            ) if given.keys() <= _WITHOUT_VALUES:
                values[name, str(column)] = None
                return True
        return False

    facts = facts_without(raw, is_one)
    return facts, tuple(values)


@cache
def _names_in(text: str) -> NamesInJinja:
    facts = facts_of(text)
    strings = [string for string, of in facts.texts if of not in _REFERENCES]
    pieces = [without_tags(text, ","), *strings]
    in_catalog = [piece for piece in pieces if CATALOG.search(piece)]
    return NamesInJinja(
        frozenset({words_of_names(" , ".join(pieces))}),
        bool(in_catalog) or any("list_relations" in word for word in facts.words),
        any(map(_LISTS_COLUMNS.search, in_catalog)),
    )


_REFERENCES: Final = frozenset({"ref", "source", "config", "var", "env_var"})
"""Calls whose strings are no names of relations, or are those of parents."""

_LISTS_COLUMNS: Final = re.compile(r"\.\s*columns\b|_columns\b|pg_attribute|pragma_|pg_stats", re.I)
"""Where a catalog lists columns, or more, and not relations alone."""
