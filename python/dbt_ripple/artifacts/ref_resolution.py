"""Which node each ``ref()`` of a node means, by its version and its position among the others."""

from __future__ import annotations

from typing import Final

from dbt_ripple.artifacts.project import Node, Project, Ref, version_text

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
