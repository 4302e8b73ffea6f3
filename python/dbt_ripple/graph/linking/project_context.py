"""What a project says of its nodes before any of them is linked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from dbt_ripple.artifacts import Node, Project, masking_functions
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.varying_columns import other_each_time
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints
from dbt_ripple.graph.hooks import Hook, Hooks, nodes_that_may_write
from dbt_ripple.graph.introspection import Introspection
from dbt_ripple.graph.linking.seeds import checksum
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.node_properties import place
from dbt_ripple.graph.normalized_code import code_of
from dbt_ripple.graph.relation_names import RelationNames
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.unresolved_names import STORED

Mark = tuple[frozenset[str], bytes]
"""Columns of a node, in lower case (or `flow.varying_columns.EVERYTHING`), and a fingerprint that is theirs, too."""


class ProjectContext:
    """A project's macros, config, names, hooks and Jinja, each analysed once.

    It depends on the manifest alone: not on a catalog, and not on how the project is linked. So all
    linkers and all comparisons of a project share one. Each part is made when it is asked for.

    Attributes:
        dialect: of its SQL.
        in_other_order: of nodes and tests, the columns that may hold something else because rows came in
            another order, and what tells that order: what only a comparison knows, or a load adds.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.dialect = dialect_of(project.metadata.adapter_type)
        self.in_other_order: Mapping[str, Sequence[Mark]] = {}

    @cached_property
    def macros(self) -> Macros:
        """What its macros call, and their fingerprints."""
        return Macros(self.project)

    @cached_property
    def functions(self) -> frozenset[str]:
        """The unique_ids of its user-defined functions."""
        return frozenset(node.unique_id for node in self.project.of_type("function"))

    @cached_property
    def functions_by_name(self) -> dict[str, list[str]]:
        """The same by the name that SQL calls them by, in lower case; two may have one in two schemas."""
        by_name: dict[str, list[str]] = {}
        for unique_id in sorted(self.functions):
            node = self.project.nodes[unique_id]
            by_name.setdefault((node.alias or node.name).lower(), []).append(unique_id)
        return by_name

    @cached_property
    def config_fingerprints(self) -> ConfigFingerprints:
        """Which config changes data (rule 7)."""
        return ConfigFingerprints(self.project, self.macros)

    @cached_property
    def names(self) -> RelationNames:
        """Which name in SQL is which node (rule 6)."""
        return RelationNames(self.project, self.dialect)

    @cached_property
    def introspection(self) -> Introspection:
        """What Jinja queries in the warehouse (rule 11)."""
        return Introspection(self.project, self.macros)

    @cached_property
    def masking(self) -> tuple[str, ...]:
        """The functions that mask their arguments, besides those that are known to."""
        return tuple(sorted(masking_functions(self.project)))

    @cached_property
    def hooks(self) -> Hooks:
        """What its hooks do to other relations than their own."""
        return Hooks(
            self.project,
            self.config_fingerprints,
            self.names,
            self._nodes_that_may_write,
        )

    @cached_property
    def hooks_that_write(self) -> list[Hook]:
        """The hooks that do something to other relations than their own."""
        # Without a node that may, nothing needs the names of all relations.
        return self.hooks.all if self._nodes_that_may_write else []

    @cached_property
    def _nodes_that_may_write(self) -> list[Node]:
        return nodes_that_may_write(self.project, self.macros)

    @cached_property
    def _each_time(self) -> dict[str, frozenset[str]]:
        return {}

    def other_each_time(self, unique_id: str, own: Collection[str] | None = None) -> frozenset[str]:
        """The columns of a node's query that may be other values each time it runs (`flow.varying_columns`).

        Those of the views that it reads are made anew with it; what a table holds is not.

        Args:
            unique_id: of the node.
            own: those that are so whatever it reads, where that is known.
        """
        known = self._each_time.get(unique_id)
        if known is not None:
            return known
        self._each_time[unique_id] = frozenset()  # of a cycle
        node = self.project.nodes[unique_id]
        sql = node.compiled_code
        if node.resource_type not in ("model", "snapshot") or node.is_python or not sql:
            return frozenset()
        above = (self.names.canonical.get(p, p) for p in self.project.parents.get(unique_id, ()))
        read = frozenset[str]().union(
            *(
                self.other_each_time(p)
                for p in above
                if self.project.nodes[p].materialized not in STORED
            )
        )
        names = (
            frozenset(own)
            if own is not None and not read
            else other_each_time(sql, self.dialect, read)
        )
        self._each_time[unique_id] = names
        return names

    @cached_property
    def all_code(self) -> bytes:
        """A fingerprint of the code of the whole project: what stands in the catalog is of it."""
        parts = []
        for unique_id, node in sorted(self.project.nodes.items()):
            if node.resource_type in RELATIONS:
                config = (node.materialized, node.config.get("contract"))
                columns = [(c.name, c.data_type) for c in node.columns.values()]
                settings = repr((config, node.identifier, columns, checksum(node)))
                parts += [unique_id.encode(), code_of(node).encode(), settings.encode()]
        return digest(*parts, self.macros.fingerprint(self.macros.user))

    @cached_property
    def all_places(self) -> bytes:
        """A fingerprint of which relations there are, where, and of which kind."""
        parts = [
            repr((unique_id, place(node), kind_of_relation(node))).encode()
            for unique_id, node in sorted(self.project.nodes.items())
            if node.resource_type in RELATIONS and not node.is_ephemeral
        ]
        return digest(*parts)


class ProjectContexts:
    """The contexts of a few projects, such as the two sides of a comparison; each is made once."""

    def __init__(self) -> None:
        self._contexts: list[ProjectContext] = []
        self._shared: list[tuple[Project, ProjectContext]] = []

    def share(self, project: Project, context: ProjectContext) -> None:
        """Take the context of a project for one that is the same to dbt, with other nodes around it."""
        if context.project is not project:
            self._shared.append((project, context))

    def of(self, project: Project) -> ProjectContext:
        """The context of this very project."""
        for context in self._contexts:
            if context.project is project:
                return context
        for around, context in self._shared:
            if around is project:
                return context
        context = ProjectContext(project)
        self._contexts.append(context)
        return context


def kind_of_relation(node: Node) -> list[Any]:
    """What an adapter tells of a relation that is there: whether it is a table, and which."""
    return [node.materialized, node.config.get("table_format"), node.config.get("file_format")]
