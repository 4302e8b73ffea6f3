"""Finds the node that a name means: on the command line, and in ``ref()``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from dbt_ripple.artifacts.project import Node, Project, Ref, version_text
from dbt_ripple.errors import RippleError

_TESTS = frozenset({"test", "unit_test", "operation"})

_SELDOM_MEANT = frozenset(
    {*_TESTS, "analysis", "asset", "dataset", "semantic_model", "metric", "saved_query"}
)


def find_node(project: Project, text: str) -> tuple[Node, str | None]:
    """The node a person means, and the column if they named one.

    A node may be given as a unique_id; a name (``fct_orders``, ``dim_customers.v2``; without a
    version it is the latest); a source as ``source.table``; any of these after its resource type
    (``exposure:daily_report``) or package (``shop.fct_orders``); as the relation it is in the
    warehouse; or as the file it is defined in (``models/fct_orders.sql``). A declared asset has its id
    (``airflow:load_orders``), and ``table:raw_orders`` is what holds data of this name. A column follows
    after a dot. Case matters only where it tells two nodes apart.

    Args:
        project: where to look.
        text: what was typed.

    Returns:
        The node, and the text after the node's name, ``None`` when there is none. Whether there is
        such a column is not looked at.

    Raises:
        RippleError: no node has this name (the nearest names are given), or several have (all
            are given).

    Example:
        >>> from dbt_ripple.artifacts.project import Metadata
        >>> node = Node(unique_id="model.shop.fct_orders", name="fct_orders", resource_type="model")
        >>> nodes = {node.unique_id: node}
        >>> shop = Project(
        ...     target_path="", metadata=Metadata(), nodes=nodes, parents={}, children={}
        ... )
        >>> found, column = find_node(shop, "fct_orders.order_total")
        >>> found.unique_id, column
        ('model.shop.fct_orders', 'order_total')
    """
    return NodeFinder(project).find(text)


class NodeFinder:
    """Finds many names in one project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._indexes: dict[Callable[[str], str], dict[str, list[str]]] = {}

    def find(self, text: str) -> tuple[Node, str | None]:
        """The node a person means, and the column if they named one (see `find_node`)."""
        text = text.strip()
        for fold in (str, str.casefold):
            index = self._indexes.get(fold)
            if index is None:
                index = self._indexes[fold] = _index(self._project, fold)
            name, column = text, None
            while name:
                if unique_ids := index.get(fold(name)):
                    return _only(self._project, unique_ids, text), column
                name, _, last = name.rpartition(".")
                column = last if column is None else f"{last}.{column}"
        raise _unknown(self._project, text)


def did_you_mean(word: str, names: Iterable[str], otherwise: str, prefix: str = "") -> str:
    """How a refusal of a word ends: the names that look most like it, or what else to do.

    They are three at most. Case does not matter.

    Example:
        >>> did_you_mean("statsu", ["status", "order_id"], "`dbt ls` lists them")
        'did you mean status?'
    """
    by_fold = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold(), by_fold, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(prefix + by_fold[n] for n in near)}?" if near else otherwise


def _index(project: Project, fold: Callable[[str], str]) -> dict[str, list[str]]:
    """Every way to name a node, strongest first: a weaker name never shadows a stronger one."""
    index: dict[str, list[str]] = {}
    for names_of in (_ids, _names, _other_names, _as_assets, _relations, _files):
        tier: dict[str, list[str]] = {}
        for node in project.nodes.values():
            for name in dict.fromkeys(fold(name) for name in names_of(node)):
                tier.setdefault(name, []).append(node.unique_id)
        for name, unique_ids in tier.items():
            index.setdefault(name, unique_ids)
    return index


def _ids(node: Node) -> Iterator[str]:
    yield node.unique_id
    if node.resource_type == "asset" and node.label:
        yield node.label


def _names(node: Node) -> Iterator[str]:
    """What holds data, and who uses it."""
    return iter(()) if node.resource_type in _SELDOM_MEANT else _spelled(node)


def _other_names(node: Node) -> Iterator[str]:
    """Semantic models and the like, which are often named after the model they stand on.

    A job is often named after the table it writes, and either may be meant.
    """
    if node.resource_type in _SELDOM_MEANT:
        yield from (node.name,) if node.resource_type == "dataset" else _spelled(node)


def _as_assets(node: Node) -> Iterator[str]:
    """What people write of anything that holds data: ``table:raw_orders``, ``dbt_model:stg_orders``."""
    if node.resource_type in ("model", "seed", "snapshot", "source"):
        kinds = ("table", "dbt_model") if node.resource_type == "model" else ("table",)
        for kind in kinds:
            yield f"{kind}:{node.display_name}"
            if node.source_name:
                yield f"{kind}:{node.source_name}.{node.name}"
    elif node.resource_type == "dataset":
        yield node.name
        yield f"table:{node.name}"
    elif node.resource_type == "asset" and node.type:
        from dbt_ripple.artifacts.assets_file import OF_PREFIX  # only where there are assets

        yield from (f"{prefix}:{node.name}" for prefix, of in OF_PREFIX.items() if of == node.type)


def _spelled(node: Node) -> Iterator[str]:
    names = [node.display_name]
    if node.resource_type == "source":
        names.append(f"{node.source_name}.{node.name}")
    elif node.version is not None:
        latest = node.latest_version
        if latest is None or version_text(latest) == version_text(node.version):
            names.append(node.name)
    for name in names:
        yield name
        yield f"{node.resource_type}:{name}"
        yield f"{node.package_name}.{name}"


def _relations(node: Node) -> Iterator[str]:
    if node.resource_type in _TESTS:
        return
    for name in (node.alias, node.identifier):
        if name:
            yield name
    if node.relation_name:
        parts = [part.strip('`"[]') for part in node.relation_name.split(".")]
        yield ".".join(parts)
        yield ".".join(parts[-2:])


def _files(node: Node) -> Iterator[str]:
    """The file a node is defined in; of one that defines several, only the whole path."""
    path = node.original_file_path
    if not path or node.resource_type == "asset":
        return
    if node.resource_type in _TESTS and path.endswith((".yml", ".yaml")):
        return
    yield path
    if not path.endswith((".yml", ".yaml")):
        yield path.rpartition("/")[2]


def _only(project: Project, unique_ids: list[str], text: str) -> Node:
    nodes = [project.nodes[unique_id] for unique_id in unique_ids]
    if len(nodes) > 1:
        names = sorted(_own_name(node) for node in nodes)
        raise RippleError(
            f"{len(nodes)} nodes have this name: {', '.join(names)}", text, "name one by its id"
        )
    return nodes[0]


def _own_name(node: Node) -> str:
    """What names this node and no other."""
    if node.resource_type == "dataset":
        return f"table:{node.name}"
    return node.label if node.resource_type == "asset" and node.label else node.unique_id


class UnknownNodeError(RippleError):
    """No node has the name."""


def _unknown(project: Project, text: str) -> RippleError:
    for unique_id in project.disabled:
        if ":" in unique_id and text.casefold() == unique_id.casefold():  # an asset
            fix = "take `retired` out of its entry, or register it again"
            return RippleError(f"{unique_id} is retired", text, fix)
        if text in (unique_id, unique_id.rpartition(".")[2]):
            return RippleError(f"{unique_id} is disabled", text, "enable it in its config")
    kind, colon, name_of_kind = text.partition(":")
    if colon and (of_kind := project.of_type(kind)):
        return RippleError(
            f"no {kind.replace('_', ' ')} of this name in project {project.name}",
            text,
            did_you_mean(
                name_of_kind,
                (node.display_name for node in of_kind),
                f"`dbt ls --resource-type {kind}` lists them",
                prefix=f"{kind}:",
            ),
        )
    names = {
        name: None
        for node in project.nodes.values()
        if node.resource_type not in _TESTS
        for name in (
            node.display_name,
            f"{node.source_name}.{node.name}" if node.source_name else node.spoken_name,
        )
    }
    without_column = did_you_mean(text.partition(".")[0], names, "`dbt ls` lists the nodes")
    what = f"no node of this name in project {project.name}"
    if not project.name:  # no dbt project, assets alone
        what = "no asset of this name, and there is no dbt project here"
        without_column = did_you_mean(
            text.partition(".")[0], names, "`dbt-ripple register` writes one"
        )
    return UnknownNodeError(what, text, did_you_mean(text, names, without_column))


_REFERABLE: Final = ("model", "seed", "snapshot")


class References:
    """The references of one project, resolved as dbt resolves them.

    What ``depends_on`` lists does not tell which reference means which node: a ``ref('m')`` without
    a version is another version of m once ``latest_version`` has changed, and both may be listed on
    either side.
    """

    def __init__(self, project: Project) -> None:
        self._by_name: dict[str, list[Node]] = {}
        for node in project.of_type(*_REFERABLE):
            self._by_name.setdefault(node.name, []).append(node)
        self._root = project.name

    def of(self, node: Node) -> list[str]:
        """The unique_id of what each reference means, in the order they are written, with repeats."""
        return [
            *(self._meant(ref, node) for ref in node.refs),
            *(f"source.{'.'.join(map(str, source))}" for source in node.sources),
        ]

    def _meant(self, ref: Ref, reader: Node) -> str:
        wanted = None if ref.version is None else version_text(ref.version)
        nodes = [
            node
            for node in self._by_name.get(ref.name, ())
            if (ref.package is None or node.package_name == ref.package)
            and (
                node.version is None
                or version_text(node.version)
                == (version_text(node.latest_version or node.version) if wanted is None else wanted)
            )
        ]
        # Of one name in several packages dbt takes its own, then the root project's.
        for package in (reader.package_name, self._root):
            for node in nodes:
                if node.package_name == package:
                    return node.unique_id
        return nodes[0].unique_id if nodes else f"{ref.package}.{ref.name}.{wanted}"
