"""One side of a comparison, for linking it once more."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import LinkingMode
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.graph.query_cache import QueryCache


class ComparedSide(NamedTuple):
    """A project, as it was analysed and compared with another version of itself.

    Attributes:
        context: of the project.
        analysis: of the project, plain.
        unchanged: the nodes that are the same on both sides, by unique_id.
        queries: where its queries are lowered.
        seeds: the files of its seeds.
    """

    context: ProjectContext
    analysis: Analysis
    unchanged: AbstractSet[str]
    queries: QueryCache
    seeds: SeedFiles

    @classmethod
    def of(
        cls,
        context: ProjectContext,
        analysis: Analysis,
        unchanged: AbstractSet[str],
        cache: Cache | None,
        seeds: SeedFiles,
    ) -> ComparedSide:
        """A side whose lowered queries may be in a cache."""
        queries = QueryCache(context.dialect, False, cache, None, context.masking)
        return cls(context, analysis, unchanged, queries, seeds)

    def linker(self, mode: LinkingMode) -> Linker:
        """A linker of this side."""
        return Linker(self.context, self.queries, mode, seeds=self.seeds)
