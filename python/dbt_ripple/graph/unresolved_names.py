"""Names that linking cannot find: which of them the engine checks, and whether it refuses them."""

from __future__ import annotations

from typing import Any, Final, Protocol

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.engine_checks import IsRefused, NameProblem, name_is_refused, refuses, worst
from dbt_ripple.flow.ir import Lowered
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.unused_ctes import checked
from dbt_ripple.graph.relations import RELATIONS

_STORED: Final = frozenset({"table", "incremental", "seed", "snapshot"})


class ProjectLinker(Protocol):
    """Where the relations of a project are linked."""

    project: Project
    dialect: str

    def table(self, reader: str, key: str, name: str) -> Relation:
        """The relation behind a name in `reader`'s query."""


def unresolved_names(linker: ProjectLinker, unique_id: str, node: Node) -> list[str]:
    """The names that a query cannot find, without those that its engine accepts."""
    lowered, _ = without_words(node.compiled_code or "", linker.dialect, unsure=False)
    if lowered.rel is None:
        return []
    looked_into = checked(lowered, linker.dialect, surely=False)
    linked = link(looked_into, lambda k, n: linker.table(unique_id, k, n), linker.dialect)
    stored = reads_stored(linker.project, unique_id)
    return [
        n for n in linked.missing if engine_refuses(linked, n, linker.dialect, stored) is not False
    ]


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
    """Whether the engine refuses a query for a name that linking could not find."""
    answers = []
    for problem in linked.problems[name]:
        of_place = refuses(problem, dialect)
        in_table = stored and problem is NameProblem.ABSENT_IN_TABLE
        of_name = name_is_refused(name, dialect, in_table) if problem.is_of_name else True
        answers.append(False if False in (of_place, of_name) else of_place and of_name)
    return worst(answers)


def reads_stored(project: Project, unique_id: str) -> bool:
    """Whether all that a node refers to are stored tables, as far as dbt knows."""
    return all(
        above.resource_type == "source" or above.materialized in _STORED
        for parent in project.parents.get(unique_id, ())
        if (above := project.nodes[parent]).resource_type in RELATIONS
    )
