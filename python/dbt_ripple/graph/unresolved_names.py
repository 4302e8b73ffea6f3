"""Names that linking cannot find: which of them the engine checks, and whether it refuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.engine_checks import (
    EXECUTED,
    IsRefused,
    NameProblem,
    name_is_refused,
    refuses,
    worst,
)
from dbt_ripple.flow.ir import Lowered
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.unused_ctes import checked
from dbt_ripple.graph.linking.functions import marked_calls
from dbt_ripple.graph.relations import RELATIONS

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

STORED: Final = frozenset({"table", "incremental", "seed", "snapshot"})


class OpaqueNames(NamedTuple):
    """Names of a query that cannot be found, though its engine is not known to do without them.

    Attributes:
        names: as `Linked.missing` has them; those that its engine certainly accepts are not among them.
        query: the query, in which each of these names may mean anything.
        everywhere: whether that is not enough: what is wrong is not that a name is nowhere, so any part of
            the query may mean something else than it seems to.
    """

    names: list[str]
    query: Linked
    everywhere: bool


def opaque_names(linker: Linker, unique_id: str, node: Node, query: Linked) -> OpaqueNames:
    """The names of a query, as linked, that cannot be followed."""
    sql, dialect = marked_calls(linker, node, node.compiled_code or "").sql, linker.dialect

    def table(key: str, name: str) -> Relation:
        return linker.table(unique_id, key, name)

    lowered = without_words(sql, dialect, unsure=False)[0] if query.missing else None
    if lowered is None or lowered.rel is None:
        return OpaqueNames([], query, False)
    linked = link(checked(lowered, dialect, surely=False), table, dialect)
    stored = reads_stored(linker.project, unique_id)
    names = [n for n in linked.missing if engine_refuses(linked, n, dialect, stored) is not False]
    if not names:
        return OpaqueNames([], query, False)
    again = link(linker.queries.lowered(sql), table, dialect, opaque_names=names)
    again.called = query.called
    return OpaqueNames(
        names, again, any(not p.is_of_name for name in names for p in linked.problems[name])
    )


def without_words(sql: str, dialect: str, *, unsure: bool) -> tuple[Lowered, bool]:
    """A query lowered without the words that are not columns, or may not be.

    Returns:
        The query, and whether all of its columns are known to linking.
    """
    from dbt_ripple.flow.engine_keywords import EngineKeywords, shows_other_columns
    from dbt_ripple.flow.lower import lower

    follows = True

    def edit(tree: Any) -> None:
        nonlocal follows
        follows = not shows_other_columns(tree, dialect)
        EngineKeywords(dialect).taken_out(tree, unsure)

    return lower(sql, dialect, edit=edit), follows


def engine_refuses(linked: Linked, name: str, dialect: str, stored: bool) -> IsRefused:
    """Whether the engine refuses a query for a name that linking could not find.

    An engine that was not asked is never taken to refuse it for sure: our rules may be wrong.
    """
    answers = []
    for problem in linked.problems[name]:
        of_place = refuses(problem, dialect)
        in_table = stored and problem is NameProblem.ABSENT_IN_TABLE
        of_name = name_is_refused(name, dialect, in_table) if problem.is_of_name else True
        answers.append(False if False in (of_place, of_name) else of_place and of_name)
    answer = worst(answers)
    return None if answer and dialect not in EXECUTED else answer


def reads_stored(project: Project, unique_id: str) -> bool:
    """Whether all that a node refers to are stored tables, as far as dbt knows."""
    return all(
        above.resource_type == "source" or above.materialized in STORED
        for parent in project.parents.get(unique_id, ())
        if (above := project.nodes[parent]).resource_type in RELATIONS
    )
