"""Declared assets over a dbt project: what their names mean, and one graph of both.

dbt's own project stays as it is, so that its fingerprints do: `DeclaredGraph.whole` is another project
around it, for questions of who stands above and below. An asset is a node of it (`asset.airflow.load_orders`
of resource type ``asset``); a source that an asset writes stays dbt's source and has the asset above it. A
table that only SQL names and nobody declares is a node of resource type ``dataset``.

What dbt builds may be read by an asset that writes a source: the graph may have cycles.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import Column, Node, NodeFinder, Project, TestMetadata, did_you_mean
from dbt_ripple.artifacts.assets_file import (
    DATASETS,
    Assertion,
    DeclaredAsset,
    Flow,
)
from dbt_ripple.artifacts.project import BUILDS_NOTHING, DependsOn
from dbt_ripple.errors import RippleError
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.reading.dialects import dialects
from dbt_ripple.flow.statements import KNOWN, Name, Statement, statements
from dbt_ripple.graph.assets.asset_nodes import (
    ASSET,
    DATASET,
    AssetLink,
    AssetNode,
    explained,
    file_of,
    is_one_query,
    names_of_node,
    not_followed,
    text_of,
)
from dbt_ripple.graph.linking.sources import DATASET_PREFIX
from dbt_ripple.graph.relation_names import RelationNames
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.graph.traversal import reach
from dbt_ripple.reasons import Reason

_CALL: Final = re.compile(
    r"""\s*(ref|source)\(\s*(['"])([^'"]+)\2\s*(?:,\s*(['"])([^'"]+)\4\s*)?\)\s*"""
)


class DeclaredGraph:
    """Assets over one dbt project.

    Args:
        project: dbt's.
        declared: the assets; those that are retired are left out.
        formerly: the other side of a comparison: a name that only it has is *gone* here.
        lenient: whether names that mean nothing are left out; else they are refused.

    Attributes:
        assets: by unique_id, in the order of the file.
        dialect: of the project's SQL.

    Raises:
        RippleError: a name means nothing (the nearest is given), or several nodes; an asset writes
            what dbt builds; or it has the name of a node of dbt.
    """

    def __init__(
        self,
        project: Project,
        declared: Iterable[DeclaredAsset],
        formerly: Project | None = None,
        lenient: bool = False,
    ) -> None:
        self.project = project
        everything = list(declared)
        self.declared = {a.unique_id: a for a in everything if a.retired is None}
        self.retired = {a.id.casefold(): a for a in everything if a.retired is not None}
        self._ids = {a.id.casefold(): u for u, a in self.declared.items()}
        self.dialect = dialect_of(project.metadata.adapter_type)
        self._names = RelationNames(project, self.dialect)
        self._finder = NodeFinder(project)
        self._formerly = formerly
        self._lenient = lenient
        for asset in self.declared.values():
            self._check_name(asset)
        self.assets = {u: self._resolved(asset) for u, asset in self.declared.items()}

    # -- names --------------------------------------------------------------------------------------

    def _check_name(self, asset: DeclaredAsset) -> None:
        """Refuse a name that means a node of dbt already."""
        kind, _, name = asset.id.partition(":")
        same = self._of_dbt.get(f"{kind}:{name}".casefold())
        if same is not None and not self._lenient and not asset.collected:
            raise RippleError(
                f"{asset.id} is {same} of the dbt project",
                asset.place,
                f"read or write it as {name}, and do not declare it",
            )

    @cached_property
    def _of_dbt(self) -> dict[str, str]:
        """The nodes of dbt, by the names that no asset may have."""
        taken: dict[str, str] = {}
        for unique_id, node in self.project.nodes.items():
            kinds = (node.resource_type, *_OF_DBT.get(node.resource_type, ()))
            for name in names_of_node(node) if node.resource_type in _NAMED else ():
                for kind in kinds:
                    taken.setdefault(f"{kind}:{name}", unique_id)
        return taken

    def find(self, text: str, place: str, *, writes: bool = False) -> str:
        """The unique_id of what a name means.

        Args:
            text: an asset's id or name, or a relation of dbt by its name, as ``source('a', 'b')``, as
                ``ref('a')``, as it is called in the warehouse, or by its unique_id.
            place: where it stands.
            writes: whether it is written to.

        Raises:
            RippleError: as `DeclaredGraph`.
        """
        unique_id = self._find(text, place)
        if unique_id is None:
            raise self._unknown(text, place)
        unique_id = self._names.canonical.get(unique_id, unique_id)
        if writes:
            self._check_written(unique_id, text, place)
        return unique_id

    def _find(self, text: str, place: str) -> str | None:
        node_id = self._ids.get(text.casefold())
        if node_id is not None or text in self.declared:
            return node_id or text
        if text in self.project.nodes and self.project.nodes[text].resource_type in RELATIONS:
            return text
        old = self.retired.get(text.casefold())
        if old is not None:
            raise RippleError(
                f"{old.id} is retired since {old.retired}",
                place,
                "take `retired` out of its entry, or take out this name",
            )
        call = _CALL.fullmatch(text)
        named = text
        if call is not None:
            first, second = call[3], call[5]
            named = f"{first}.{second}" if second else first
        try:
            node, column = self._finder.find(named)
            if column is None and node.resource_type in (*RELATIONS, *SEMANTIC):
                return node.unique_id
        except RippleError as error:
            if error.fix == "name one by its id":  # it is several
                raise RippleError(f"{text}: {error.what}", place, error.fix) from None
        unique_id = self._names.node_named(named) if "." in named else None
        if unique_id is not None:
            return unique_id
        same = [u for u, a in self.declared.items() if a.name.casefold() == named.casefold()]
        written_down = [u for u in same if not self.declared[u].collected]
        same = written_down or same
        if len(same) > 1:
            ids = ", ".join(self.declared[u].id for u in same)
            raise RippleError(f"{text} is several assets: {ids}", place, "name one by its id")
        return same[0] if same else None

    def _is_built(self, unique_id: str) -> bool:
        node = self.project.nodes.get(unique_id)
        return node is not None and node.resource_type != "source"

    def _check_written(self, unique_id: str, text: str, place: str) -> None:
        if self._is_built(unique_id):
            raise RippleError(
                f"{text} is {unique_id}, which dbt builds",
                place,
                "an asset writes a source of dbt or another asset",
            )

    def _unknown(self, text: str, place: str) -> RippleError:
        names = [asset.id for asset in self.declared.values()]
        for node in self.project.nodes.values():
            if node.resource_type in RELATIONS:
                names += [node.display_name]
                names += [f"{node.source_name}.{node.name}"] if node.source_name else []
        bare = text.rpartition(":")[2]
        fix = did_you_mean(text, names, "") or did_you_mean(bare, names, "")
        return RippleError(
            f"nothing is called {text}", place, fix or "declare it, or name a node of dbt"
        )

    def relation_named(self, name: Name, dialect: str) -> str | None:
        """What a name in an asset's SQL means: a relation of dbt, or an asset; None of anything else.

        A name without a schema means the only relation that is called so.
        """
        unique_id = self._names.node_of(name.key)
        if unique_id is not None:
            return unique_id
        key = name.key.replace('"', "").lower()
        candidates = self._by_suffix.get(key, ())
        if not candidates and "." in key:
            # A catalog that dbt does not say.
            candidates = (
                self._by_suffix.get(key.split(".", 1)[1], ()) if key.count(".") == 2 else ()
            )
            # An asset that says no schema may stand in any.
            candidates = candidates or {
                u
                for u in self._by_suffix.get(key.rpartition(".")[2], ())
                if u in self.declared and "." not in self.declared[u].name
            }
        return next(iter(candidates)) if len(candidates) == 1 else None

    def _one_of(self, own: Sequence[str], name: Name) -> str | None:
        """The only one of some nodes whose name ends as a name in SQL."""
        wanted = name.key.replace('"', "").lower().split(".")
        candidates = {
            u
            for u in own
            for parts in self._spellings(u)
            if parts[-len(wanted) :] == wanted[-len(parts) :]
        }
        return next(iter(candidates)) if len(candidates) == 1 else None

    def _spellings(self, unique_id: str) -> list[list[str]]:
        asset = self.declared.get(unique_id)
        if asset is not None:
            return [asset.name.lower().split(".")]
        node = self.project.nodes.get(unique_id)
        keys = self._names.keys_of(node) if node is not None else ()
        return [key.replace('"', "").lower().split(".") for key in keys]

    def _ambiguous(self, name: Name) -> Sequence[str]:
        candidates = self._by_suffix.get(name.key.replace('"', "").lower(), ())
        return sorted(candidates) if len(candidates) > 1 else ()

    @cached_property
    def _by_suffix(self) -> dict[str, set[str]]:
        """Relations by their names in lower case, with and without what stands before."""
        by_suffix: dict[str, set[str]] = {}
        for key, unique_id in self._names.by_name.items():
            parts = key.replace('"', "").lower().split(".")
            for length in range(1, len(parts) + 1):
                of_name = by_suffix.setdefault(".".join(parts[-length:]), set())
                of_name.add(self._names.canonical.get(unique_id, unique_id))
        own: dict[str, set[str]] = {}
        for unique_id, asset in self.declared.items():
            if asset.type in DATASETS:
                parts = asset.name.lower().split(".")
                for length in range(1, len(parts) + 1):
                    own.setdefault(".".join(parts[-length:]), set()).add(unique_id)
        for key, unique_ids in own.items():  # dbt's own names come first
            by_suffix.setdefault(key, unique_ids)
        return by_suffix

    # -- assets -------------------------------------------------------------------------------------

    def _resolved(self, asset: DeclaredAsset) -> AssetNode:
        gone: list[str] = []
        lenient = self._lenient or asset.collected
        reads = list(self._links(asset.reads, gone, lenient))
        writes = list(self._links(asset.writes, gone, lenient, writes=True))
        if asset.collected:
            reads, writes = _most_detailed(reads), _most_detailed(writes)
        dialect = asset.dialect or self.dialect
        parsed: list[Statement] | Reason = []
        named: dict[str, str] = {}
        if asset.sql is not None:
            if dialect not in dialects():
                raise RippleError(
                    f"{dialect!r} is no dialect of SQL",
                    asset.place,
                    did_you_mean(dialect, dialects(), f"the dialects are {', '.join(dialects())}"),
                )
            parsed = statements(asset.sql, dialect)
            if not isinstance(parsed, Reason):
                own = [link.unique_id for link in (*reads, *writes)]
                named = self._named(asset, parsed, dialect, gone, own if lenient else ())
            if dialect not in KNOWN:
                parsed = parsed if isinstance(parsed, Reason) else not_followed(parsed)
        return AssetNode(
            declared=asset,
            dialect=dialect,
            reads=reads,
            writes=writes,
            statements=parsed,
            named=named,
            gone=gone,
        )

    def _links(
        self, flows: Iterable[Flow], gone: list[str], lenient: bool, *, writes: bool = False
    ) -> Iterator[AssetLink]:
        for flow in flows:
            try:
                yield AssetLink(self.find(flow.node, flow.place, writes=writes), flow)
            except RippleError:
                if self._was_there(flow.node):
                    gone.append(flow.node)
                elif not lenient:
                    raise

    @cached_property
    def _former(self) -> DeclaredGraph | None:
        if self._formerly is None:
            return None
        return DeclaredGraph(self._formerly, self.declared.values(), lenient=True)

    def _was_there(self, text: str) -> bool:
        try:
            return self._former is not None and bool(self._former.find(text, ""))
        except RippleError:
            return False

    def _named(
        self,
        asset: DeclaredAsset,
        parsed: Sequence[Statement],
        dialect: str,
        gone: list[str],
        own: Sequence[str],
    ) -> dict[str, str]:
        named: dict[str, str] = {}
        built: set[str] = set()
        lenient = self._lenient or asset.collected
        for statement in parsed:
            for name in statement.reads:
                if name.key in built or name.key in named:
                    continue
                unique_id = self._one_of(own, name) or self.relation_named(name, dialect)
                if unique_id is None and name.key in statement.ctes:
                    continue
                several = self._ambiguous(name) if unique_id is None else ()
                if several and not lenient:
                    raise RippleError(
                        f"{name.spelled} in its SQL may be {' or '.join(several)}",
                        asset.place,
                        "write the schema before the name",
                    )
                if unique_id is None and self._former is not None:
                    was = self._former.relation_named(name, dialect)
                    gone += [name.spelled] if was in self._former.project.nodes else []
                named[name.key] = unique_id or DATASET_PREFIX + name.key
            target = statement.writes
            if target is None:
                continue
            if statement.temporary:
                built.add(target.key)
                continue
            unique_id = self._one_of(own, target) or self.relation_named(target, dialect)
            if unique_id is not None and not lenient:
                self._check_written(unique_id, target.spelled, asset.place)
            if unique_id is not None and asset.collected and self._is_built(unique_id):
                continue
            named[target.key] = unique_id or DATASET_PREFIX + target.key
        return named

    # -- one graph ----------------------------------------------------------------------------------

    @cached_property
    def datasets(self) -> list[str]:
        """The relations that only SQL of assets names, by unique_id."""
        unique_ids = dict.fromkeys(
            u
            for a in self.assets.values()
            for u in (*a.above(), *a.below())
            if u not in self.assets
        )
        return [u for u in unique_ids if u not in self.project.nodes]

    @cached_property
    def edges(self) -> list[tuple[str, str]]:
        """Who reads or writes whom: pairs of a parent and a child, each once."""
        pairs: dict[tuple[str, str], None] = {}
        for unique_id, asset in self.assets.items():
            pairs |= {(above, unique_id): None for above in asset.above() if above != unique_id}
            pairs |= {(unique_id, below): None for below in asset.below() if below != unique_id}
        return list(pairs)

    @cached_property
    def self_reads(self) -> set[tuple[str, str]]:
        """Of these, those by which an asset reads another one that it writes itself."""
        pairs = set(self.edges)
        return {
            (above, unique_id)
            for unique_id, asset in self.assets.items()
            for above in asset.above()
            if above != unique_id
            and above not in self.project.nodes
            and (unique_id, above) in pairs
        }

    @cached_property
    def closing(self) -> set[tuple[str, str]]:
        """Of these, those that would close a cycle."""
        children = {u: list(below) for u, below in self.project.children.items()}
        closing: set[tuple[str, str]] = set()
        if not _goes_round(self.project, self.edges):
            return closing
        # What an asset reads comes first: of a cycle, what it writes back closes it. But a job that reads the
        # table it fills (`self_reads`) closes a cycle by reading, so that the table comes after it.
        own = self.self_reads

        def place(pair: tuple[str, str]) -> int:
            return 2 if pair in own else int(pair[0] in self.assets)

        for parent, child in sorted(self.edges, key=place):
            if parent in reach(child, children):
                closing.add((parent, child))
            else:
                children.setdefault(parent, []).append(child)
        return closing

    @cached_property
    def whole(self) -> Project:
        """The project with the assets in it."""
        return self._with(self.edges)

    @cached_property
    def acyclic(self) -> Project:
        """The same without the edges that would close a cycle."""
        return self._with([edge for edge in self.edges if edge not in self.closing])

    def _with(self, edges: Iterable[tuple[str, str]]) -> Project:
        nodes = dict(self.project.nodes)
        parents = {u: list(above) for u, above in self.project.parents.items()}
        children = {u: list(below) for u, below in self.project.children.items()}
        nodes |= {u: self._node(asset) for u, asset in self.assets.items()}
        nodes |= {u: self._test(assertion) for u, assertion in self.assertions.items()}
        edges = [*edges, *((assertion.node, u) for u, assertion in self.assertions.items())]
        for unique_id in self.datasets:
            name = unique_id.removeprefix(DATASET_PREFIX)
            nodes[unique_id] = Node(
                unique_id=unique_id,
                name=name,
                resource_type=DATASET,
                relation_name=name,
                fqn=[self.project.name, name],
            )
        for parent, child in edges:
            children.setdefault(parent, []).append(child)
            parents.setdefault(child, []).append(parent)
        for unique_id in nodes:
            parents.setdefault(unique_id, [])
            children.setdefault(unique_id, [])
        for asset in self.assets.values():
            for link in asset.writes:
                nodes[link.unique_id] = explained(nodes[link.unique_id], link.flow)
        declarations = msgspec.json.encode(
            [
                (
                    *(text_of(a), a.description, a.owner, a.tags, a.schedule, a.meta, a.columns),
                    *(a.runs, a.assertions),
                )
                for a in self.declared.values()
            ]
        )
        project = self.project
        return project.having(
            **self._history(),
            of_dbt=project,
            nodes=nodes,
            parents=parents,
            children=children,
            disabled=[*project.disabled, *(asset.id for asset in self.retired.values())],
            digest=lambda: hashlib.sha256(project.digest.encode() + declarations).hexdigest(),
        )

    def _history(self) -> dict[str, Any]:
        """The runs of dbt and those that events tell of, as fields of a `Project`; dbt's come last."""
        runs = [run for asset in self.declared.values() for run in asset.runs]
        runs += [run for assertion in self.assertions.values() for run in assertion.results]
        if not runs:
            return {}
        project = self.project
        args = dict(project.run_args)
        if args.get("which") in BUILDS_NOTHING:
            del args["which"]
        return {"run_results": [*runs, *project.executed], "run_args": args}

    @cached_property
    def assertions(self) -> dict[str, Assertion]:
        """The checks that events tell of, by unique_id, as far as what they are about is here."""
        assertions: dict[str, Assertion] = {}
        for asset in self.declared.values():
            for assertion in asset.assertions:
                node = self._names.canonical.get(assertion.node, assertion.node)
                if node in self.project.nodes or node in self.declared:
                    assertions[assertion.unique_id] = msgspec.structs.replace(assertion, node=node)
        return assertions

    def _test(self, assertion: Assertion) -> Node:
        return Node(
            unique_id=assertion.unique_id,
            name=assertion.name,
            resource_type="test",
            package_name=self.project.name,
            fqn=[self.project.name, "assets", assertion.name],
            description=assertion.description,
            config={} if assertion.severity is None else {"severity": assertion.severity},
            compiled=True,
            compiled_code="",  # it is no query of dbt, and there is nothing to compile
            attached_node=assertion.node,
            column_name=assertion.column,
            test_metadata=TestMetadata(name=assertion.kind),
            depends_on=DependsOn(nodes=[assertion.node]),
        )

    def _node(self, asset: AssetNode) -> Node:
        declared_asset = asset.declared
        is_query = asset.dialect == self.dialect and is_one_query(asset.statements)
        columns = {
            column.name: Column(
                name=column.name,
                description=column.description,
                data_type=column.type,
                meta={} if column.pii is None else {"pii": column.pii},
            )
            for column in declared_asset.columns
        }
        node = Node(
            unique_id=asset.unique_id,
            name=declared_asset.name,
            resource_type=ASSET,
            type=declared_asset.type,
            label=declared_asset.id,
            package_name=self.project.name,
            original_file_path=file_of(declared_asset),
            path=declared_asset.source_ref or "",
            fqn=[self.project.name, "assets", declared_asset.name],
            owner=dict(declared_asset.owner),
            tags=list(declared_asset.tags),
            meta=dict(declared_asset.meta),
            description=declared_asset.description,
            columns=columns,
            raw_code=text_of(declared_asset),
            compiled_code=declared_asset.sql if is_query else None,
            url=declared_asset.source_ref,
            depends_on=DependsOn(nodes=list(asset.above())),
        )
        for link in asset.reads:
            node = explained(node, link.flow)
        return node


_OF_DBT: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("dbt_model", "table"),
    "seed": ("table",),
    "snapshot": ("table",),
    "source": ("table",),
}
_NAMED: Final = (*RELATIONS, *SEMANTIC, "exposure")


def _goes_round(project: Project, edges: Iterable[tuple[str, str]]) -> bool:
    """Whether the graph of a project has a cycle once some edges are added."""
    children = {u: list(below) for u, below in project.children.items()}
    waiting: dict[str, int] = {}
    for parent, child in edges:
        children.setdefault(parent, []).append(child)
    for below in children.values():
        for child in below:
            waiting[child] = waiting.get(child, 0) + 1
    ready = [u for u in children if not waiting.get(u)]
    while ready:
        for child in children.get(ready.pop(), ()):
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return any(waiting.values())


def _most_detailed(links: list[AssetLink]) -> list[AssetLink]:
    """Of links that are both declared and collected, those that name columns."""
    with_columns = {link.unique_id for link in links if link.flow.columns is not None}
    return [
        link
        for link in links
        if link.flow.columns is not None or link.unique_id not in with_columns
    ]
