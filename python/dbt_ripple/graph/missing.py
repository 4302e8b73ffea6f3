"""Relations that cannot be built: their queries name what is certainly not there.

Rule 5 calls a relation broken as soon as a name in it cannot be found. That errs on the wide side:
a catalog may be older than its warehouse, and some engines do not look into what nothing reads. Here
it has to be certain, so only what the text of queries says is believed:

* the columns of a dataset dbt does not know, of a seed whose file is not at hand, and of all but
  the sources that are given are open: a catalog may be older than what it lists;
* so are those of a relation that keeps columns its query no longer has (incremental, snapshot) or
  to which hooks may add some;
* a name counts where the result of the query is made of it, and not where it is ambiguous, or one
  that an engine knows without a declaration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dbt_ripple.artifacts import CatalogColumn, Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.live import live
from dbt_ripple.flow.relation import Relation
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.linker import Linker
from dbt_ripple.graph.relations import Known, cannot_see
from dbt_ripple.graph.seeds import SeedFiles
from dbt_ripple.graph.settings import hooks_of

RUNS_ITS_QUERY: Final = frozenset(
    "table view incremental materialized_view streaming_table dynamic_table snapshot".split()
)
"""Materializations whose query the engine has to accept for the node to be built."""

_ONLY_ITS_QUERY: Final = frozenset({"table", "view", "ephemeral"})
_KNOWN_TO_ENGINES: Final = frozenset(
    "ctid current_catalog current_date current_path current_role current_schema current_time "
    "current_timestamp current_user filename level localtime localtimestamp oid rowid rownum "
    "session_user sysdate systimestamp system_user tableoid user xmax xmin".split()
)
"""Names that some engine has a value for where no column is called so."""


class MissingNames(Linker):
    """One side of a project, linked by its own text, as far as it is asked for.

    Args:
        project: the side.
        catalog: the columns of the sources whose columns are believed.
        cache: where lowered queries may be found.
    """

    def __init__(
        self, project: Project, catalog: dict[str, list[CatalogColumn]], cache: Cache | None = None
    ) -> None:
        super().__init__(replace(project, catalog=catalog), False, cache, None, SeedFiles())
        self.reads: dict[str, set[str]] = {}

    def of(self, unique_id: str) -> list[str]:
        """The names for want of which a node cannot be built; empty where it may well be."""
        node = self.project.nodes[unique_id]
        if node.materialized not in RUNS_ITS_QUERY or self.introspection.of(node):
            return []
        return self.missing_in(unique_id, node)

    def missing_in(self, unique_id: str, node: Node) -> list[str]:
        """The names that a query, or an ephemeral model it is made of, looks for in vain."""
        followed = self.follow(unique_id, node)
        if isinstance(followed, str):
            return []
        found = [name for name in followed[1].missing if _is_certain(name)]
        for parent in sorted(self.reads[unique_id]):
            above = self.project.nodes[parent]
            if above.is_ephemeral and not self.introspection.of(above):
                found += self.missing_in(parent, above)
        return list(dict.fromkeys(found))

    def node(self, unique_id: str) -> Known:
        """A relation; one whose columns its text does not tell for sure is open."""
        if unique_id not in self.known and not self.has_the_columns_of_its_text(unique_id):
            leaf = digest(b"open", unique_id.encode())
            self.known[unique_id] = self.open_leaf(unique_id, leaf, [], False)
        return super().node(unique_id)

    def has_the_columns_of_its_text(self, unique_id: str) -> bool:
        """Whether a relation's columns are those of its query, or of its file."""
        node = self.project.nodes[unique_id]
        if hooks_of(node) or unique_id in self.hooks.writing:
            return False
        if node.resource_type in ("source", "seed"):  # as far as their columns are known
            return True
        return node.materialized in _ONLY_ITS_QUERY and not self.introspection.of(node)

    def follow(self, unique_id: str, node: Node) -> tuple[dict[str, str], Linked] | str:
        """A node's query, without what its result is not made of."""
        reason = cannot_see(node)
        if reason is not None:
            return reason
        lowered = self.queries.lowered(node.compiled_code or "")
        if lowered.rel is None:
            return lowered.reason or "it is not a query"
        self.reads[unique_id] = set()
        return {}, link(live(lowered), lambda k, n: self.table(unique_id, k, n), self.dialect)

    def table(self, reader: str, key: str, name: str) -> Relation:
        """The relation behind a name; notes who reads it."""
        unique_id = self.names.node_of(key)
        if unique_id in self.project.nodes and unique_id != reader:
            self.reads[reader].add(unique_id)
        return super().table(reader, key, name)


def _is_certain(name: str) -> bool:
    plain = name.rpartition(".")[2].lower()
    return (
        not name.endswith(" is ambiguous")
        and not plain.startswith("_")
        and "$" not in plain
        and plain not in _KNOWN_TO_ENGINES
    )
