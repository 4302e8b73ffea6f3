"""Which of the names that linking cannot find an engine would not find either.

By rule 5 every vertex of a relation changes as soon as a name in its query cannot be found. That errs on
the wide side: some engines do not look into what nothing reads, a name may be a word of the engine's
own, and text is not all there is to a relation. *Broken* is a query only where its engine says so, so
that has to be certain (`BrokenNodeFinder`):

* the columns of a dataset dbt does not know, of a seed whose file is not at hand, and of all but
  the sources that are given are open: a catalog may be older than what it lists;
* so are those of a relation that keeps columns its query no longer has (incremental, snapshot), to
  which hooks may add some, or whose text is not what will be built (rule 11);
* the engine looks at the place where the name stands, and knows nothing by it (`flow.engine_checks`);
* the query is run: an ephemeral model's only where it is inlined.

What is not broken by this may still fail to build, which is reported (*may not build*), unless it certainly builds
(`graph.unresolved_names`): then nothing is reported and nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from dbt_ripple.artifacts import CatalogColumn, Node, Project
from dbt_ripple.flow.engine_checks import BY_TEXT_ALONE, NameProblem
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import DIALECTS
from dbt_ripple.flow.link import link
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.unused_ctes import checked
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.hypothetical import BuiltElsewhere, Supposed
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import FollowedQuery, LinkingMode
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.sources import unlisted_relation
from dbt_ripple.graph.query_cache import QueryCache
from dbt_ripple.graph.relations import LinkedNode, why_unreadable
from dbt_ripple.graph.traversal import reach_all
from dbt_ripple.graph.unresolved_names import engine_refuses, reads_stored, without_words
from dbt_ripple.jinja.text import branches, normalised
from dbt_ripple.reasons import Code, Reason, names_missing

RUNS_ITS_QUERY: Final = frozenset(
    "table view incremental materialized_view streaming_table dynamic_table snapshot test".split()
)
"""Materializations whose query the engine has to accept for the node to be built."""

BUILT: Final = frozenset({"model", "seed", "snapshot", "function"})
"""Resource types that CI builds before it tests."""

_ONLY_ITS_QUERY: Final = frozenset({"table", "view", "ephemeral"})
_USED_WRONGLY: Final = frozenset(
    {
        NameProblem.AGGREGATE_AS_KEY,
        NameProblem.ANOTHER_KEY,
        NameProblem.HIDDEN,
        NameProblem.NOT_A_KEY,
    }
)
_RAN: Final = frozenset({"fail", "pass", "success", "warn"})
_WORD: Final = re.compile(r"\w+")
_MAY_ADD_COLUMNS: Final = frozenset(
    """
    alter call copy create do drop exec execute merge rename replace select
    """.split()
)
"""Words of a hook that may add columns to a relation, or put another one in its place."""


class BrokenNodeFinder(LinkingMode):
    """One side of a project, linked with the columns that are certain; a node is linked when it is asked for.

    Args:
        context: of the project.
        cache: where lowered queries may be found.
        hypothetical: relations whose columns are to be taken as other than they are, or as another
            project has them.
        catalog: the columns of the sources whose columns are believed; by default those that `believed` gives.
        by_text_alone: whether only columns count that the text of queries tells, and only what is
            refused for what is listed (`engine_checks.BY_TEXT_ALONE`).

    Attributes:
        linker: of the project, in this mode.
    """

    def __init__(
        self,
        context: ProjectContext,
        cache: Cache | None = None,
        hypothetical: Mapping[str, Supposed] | None = None,
        *,
        catalog: Mapping[str, list[CatalogColumn]] | None = None,
        by_text_alone: bool = False,
    ) -> None:
        self.context = context
        self.by_text_alone = by_text_alone
        self.project = context.project
        queries = QueryCache(context.dialect, False, cache, None, context.masking)
        catalog = believed(context.project) if catalog is None else catalog
        self.linker = Linker(context, queries, self, catalog=catalog, hypothetical=hypothetical)
        self._searched: dict[str, tuple[list[str], set[str]]] = {}

    def of(self, unique_id: str) -> list[str]:
        """The missing names that certainly keep a node from being built; those of what it inlines, too."""
        if not runs_its_query(self.context, self.project.nodes[unique_id]):
            return []
        missing: dict[str, None] = {}
        for part in self.parts(unique_id):
            missing.update(dict.fromkeys(self.missing_in(part)[0]))
        return list(missing)

    def of_own_text(self, unique_id: str) -> list[str]:
        """Those of them that stand in the node's own query."""
        node = self.project.nodes[unique_id]
        if not self.text_is_what_runs(node):  # which needs no parent to be linked
            return []
        runs = (
            self.is_run_inlined(unique_id)
            if node.is_ephemeral
            else runs_its_query(self.context, node)
        )
        return self.missing_in(unique_id)[0] if runs else []

    def text_is_what_runs(self, node: Node) -> bool:
        """Whether a node's compiled text is certainly what will run, in a dialect that is known."""
        adapter = self.project.metadata.adapter_type
        strange = adapter is not None and adapter not in DIALECTS  # read as Spark's, and not known
        return not strange and not self.context.introspection.of(node)

    def is_run_inlined(self, unique_id: str) -> bool:
        """Whether an ephemeral model's text is part of a query that is run."""
        return any(
            unique_id in self.parts(reader)
            and runs_its_query(self.context, self.project.nodes[reader])
            for readers in inlined_by(self.project, unique_id)
            for reader in readers
        )

    def parts(self, unique_id: str) -> list[str]:
        """A node and the ephemeral models whose text its query holds where the engine sees it."""
        unique_ids = {unique_id: None}
        ahead = [unique_id]
        while ahead:
            for parent in sorted(self.missing_in(ahead.pop())[1]):
                if self.project.nodes[parent].is_ephemeral and parent not in unique_ids:
                    unique_ids[parent] = None
                    ahead.append(parent)
        return list(unique_ids)

    def missing_in(self, unique_id: str) -> tuple[list[str], set[str]]:
        """The names that a node's own query cannot find, and the relations it reads."""
        searched = self._searched.get(unique_id)
        if searched is None:
            self._searched[unique_id] = [], set()  # a cycle ends here
            searched = self._search(unique_id, self.project.nodes[unique_id])
            self._searched[unique_id] = searched
        return searched

    def _search(self, unique_id: str, node: Node) -> tuple[list[str], set[str]]:
        """What `missing_in` keeps."""
        if why_unreadable(node) is not None:
            return [], set()
        reads: set[str] = set()

        def table(key: str, name: str) -> Relation:
            above = self.linker.names.node_of(key)
            if above in self.project.nodes and above != unique_id:
                reads.add(above)
            return self.linker.table(unique_id, key, name)

        lowered, follows = without_words(node.compiled_code or "", self.linker.dialect, unsure=True)
        if lowered.rel is None:
            return [], set()
        linked = link(
            checked(lowered, self.linker.dialect, surely=True), table, self.linker.dialect
        )
        if not follows or not self.text_is_what_runs(node):
            return [], reads
        stored = reads_stored(self.project, unique_id)
        return [
            name
            for name in linked.missing
            if engine_refuses(linked, name, self.linker.dialect, stored) is True
            and not self.only_in_a_branch(node, name, linked.problems[name])
            and (not self.by_text_alone or linked.problems[name] <= BY_TEXT_ALONE)
        ], reads

    def only_in_a_branch(self, node: Node, name: str, problems: Collection[NameProblem]) -> bool:
        """Whether a name may stand only where an incremental model asks whether it is there already.

        Of a name that is there, and is used in a way that the engine refuses, the words do not tell.
        """
        if node.materialized != "incremental":
            return False
        if self.context.macros.that_ask(node.depends_on.macros):
            return True
        if self.by_text_alone or not _USED_WRONGLY.isdisjoint(problems):
            return bool(branches(node.raw_code))
        plain = name.rpartition(".")[2].lower()
        hidden = _WORD.findall(" ".join(branches(node.raw_code)).lower())
        return plain in hidden and hidden.count(plain) >= _WORD.findall(
            normalised(node.raw_code).lower()
        ).count(plain)

    # -- relations whose columns are certain ----------------------------------------------------

    def substitute(self, linker: Linker, unique_id: str) -> LinkedNode | None:
        """A relation whose columns its text does not tell for sure is open."""
        if self.is_certain(unique_id):
            return None
        return unlisted_relation(linker, unique_id, digest(b"open", unique_id.encode()), [], False)

    def follow(self, linker: Linker, unique_id: str, node: Node) -> FollowedQuery | Reason:
        """A node's query, for the columns that its readers see."""
        lowered = linker.queries.lowered(node.compiled_code or "")
        if lowered.rel is None:
            return lowered.reason or Code.NO_QUERY()
        return {}, link(lowered, lambda k, n: linker.table(unique_id, k, n), linker.dialect)

    def is_certain(self, unique_id: str) -> bool:
        """Whether all columns of a relation are known for sure, as far as it is looked at alone."""
        change = self.linker.hypothetical.get(unique_id)
        if isinstance(change, BuiltElsewhere):
            return change.is_certain
        return change is not None or self.has_the_columns_of_its_text(unique_id)

    def has_the_columns_of_its_text(self, unique_id: str) -> bool:
        """Whether a relation's columns are those of its query, or of its file."""
        node = self.project.nodes[unique_id]
        if self.by_text_alone and node.resource_type in ("source", "seed"):
            return False
        if node.resource_type == "source":  # as far as its columns are known
            return True
        if any(map(self.may_add_columns, (node, *self.writing_by_hooks(unique_id)))):
            return False
        if node.resource_type == "seed":
            return True
        return (
            node.materialized in _ONLY_ITS_QUERY
            and not self.context.introspection.of(node)
            and not self.context.macros.of_materialization(node.materialized)
        )

    def writing_by_hooks(self, unique_id: str) -> list[Node]:
        """The nodes whose hooks may write to a relation besides their own.

        What an on-run hook does that is not known is not done between two models.
        """
        nodes = self.project.nodes
        return [
            nodes[hook.owner]
            for hook in self.context.hooks.all
            if unique_id in hook.writes
            or (hook.anything and nodes[hook.owner].resource_type != "operation")
        ]

    def may_add_columns(self, node: Node) -> bool:
        """Whether the hooks of a node, or an on-run hook, may add columns to a relation."""
        is_hook = node.resource_type == "operation"
        texts = [node.raw_code] if is_hook else [sql for _, sql in hooks_of(node)]
        reader = self.context.config_fingerprints.hook_reader
        done = [reader.of(text, node.package_name) for text in texts]
        return any(
            d.because is not None or d.packages or not d.words.isdisjoint(_MAY_ADD_COLUMNS)
            for d in done
        )


def runs_its_query(context: ProjectContext, node: Node) -> bool:
    """Whether a node is built, or tested, by running its query as it stands."""
    materialized = "snapshot" if node.resource_type == "snapshot" else node.materialized or ""
    if node.resource_type == "test":
        materialized = "test"
    late = node.config.get("bind") is False  # Redshift looks into such a view when it is read
    return (
        materialized in RUNS_ITS_QUERY
        and not late
        and not context.macros.of_materialization(materialized)
    )


def inlined_by(project: Project, ephemeral: str) -> tuple[set[str], set[str]]:
    """The relations, and the tests, whose queries hold the text of an ephemeral model."""
    nodes = project.nodes
    readers = reach_all([ephemeral], project.children, through=lambda u: nodes[u].is_ephemeral)
    tests = {u for u in readers if nodes[u].resource_type == "test"}
    relations = {
        u for u in readers if nodes[u].resource_type in BUILT and not nodes[u].is_ephemeral
    }
    return relations, tests


def believed(project: Project) -> dict[str, list[CatalogColumn]]:
    """The columns of sources and seeds, where the catalog is not older than what reads them."""
    if project.catalog_is_older:
        return {}
    catalog = project.catalog
    return {u: catalog[u] for u in catalog if u.startswith(("source.", "seed."))}


def judge(certain: Callable[[], BrokenNodeFinder], seen: Iterable[NodeAnalysis]) -> None:
    """Decide which relations and tests are broken by a name that they cannot find.

    Each is *broken* where its engine certainly refuses it, and *opaque*, as it may not build, where that
    is not known. Fingerprints stay as they are. What one side alone does not tell is whether it was built:
    see `changes.verdict`.

    Args:
        certain: gives what knows it, of the project; it is asked only where something is not found.
        seen: the relations and tests, as linked.
    """
    for analysed in seen:
        if analysed.status != "broken" or analysed.reason == Code.GONE():
            continue
        if names := certain().of_own_text(analysed.unique_id):
            analysed.reason = Code.CANNOT_FIND(names=names)
        else:
            analysed.status = "opaque"
            analysed.reason = Code.MAY_NOT_BUILD(because=cannot_follow(analysed))


def cannot_follow(analysed: NodeAnalysis) -> Reason:
    """The reason of a node with names that we cannot find, and that its engine may know."""
    return Code.CANNOT_FOLLOW(names=names_missing(analysed.reason))


NOT_FOUND: Final = frozenset({Code.CANNOT_FIND, Code.CANNOT_FOLLOW, Code.MAY_NOT_BUILD})
"""Reasons of a node with names that cannot be found."""


def ran(project: Project) -> set[str]:
    """The nodes and tests whose query, as the manifest has it, an engine has accepted."""
    invocation = project.metadata.invocation_id
    return {
        result.unique_id
        for result in project.executed
        if result.status in _RAN
        and not (invocation and result.invocation_id and result.invocation_id != invocation)
    }
