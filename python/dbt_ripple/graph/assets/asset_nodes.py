"""Declared assets as nodes of a project: their ids, their properties, and their SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Column, Node
from dbt_ripple.artifacts.assets_file import COLLECTED, KINDS, DeclaredAsset, Flow
from dbt_ripple.artifacts.assets_path import FILE
from dbt_ripple.flow.statements import KNOWN, Statement
from dbt_ripple.reasons import Code, Reason

ASSET: Final = "asset"
"""Resource type of a declared asset."""
DATASET: Final = "dataset"
"""Resource type of a relation that is read or written and that nobody declares."""


class AssetLink(NamedTuple):
    """What an asset reads or writes, by its unique_id."""

    unique_id: str
    flow: Flow


@dataclass
class AssetNode:
    """A declared asset, with what its names mean.

    Attributes:
        dialect: its SQL is written in.
        reads: what the declaration says that it reads, in order.
        writes: likewise.
        statements: of its SQL; the reason why there are none where it cannot be read; empty without SQL.
        named: the relations that its SQL names, by their keys.
        gone: what it reads or writes that is there no more, as it is called.
    """

    declared: DeclaredAsset
    dialect: str
    reads: list[AssetLink]
    writes: list[AssetLink]
    statements: list[Statement] | Reason
    named: dict[str, str]
    gone: list[str]

    @property
    def unique_id(self) -> str:
        """Its id in the graph."""
        return self.declared.unique_id

    def sql_targets(self) -> dict[str, str]:
        """The relations its statements write to, by key, without those that end with the script."""
        if isinstance(self.statements, Reason):
            return {}
        return {
            s.writes.key: self.named[s.writes.key]
            for s in self.statements
            if s.writes is not None and s.writes.key in self.named
        }

    def sql_reads(self) -> dict[str, None]:
        """The relations its statements read."""
        if isinstance(self.statements, Reason):
            return {}
        return dict.fromkeys(
            self.named[name.key]
            for s in self.statements
            for name in s.reads
            if name.key in self.named
        )

    def above(self) -> dict[str, None]:
        """All that it reads."""
        return dict.fromkeys([*(link.unique_id for link in self.reads), *self.sql_reads()])

    def below(self) -> dict[str, None]:
        """All that it writes."""
        below = [*(link.unique_id for link in self.writes), *self.sql_targets().values()]
        return dict.fromkeys(below)


def file_of(asset: DeclaredAsset) -> str:
    """The file it is declared in; beside the project only its name. Events have none."""
    if asset.place.startswith(COLLECTED):
        return ""
    file = asset.place.rpartition(":")[0]
    return FILE if file.replace("\\", "/").rpartition("/")[2] == FILE else file


def names_of_node(node: Node) -> set[str]:
    """How a declaration may name a node of dbt besides its unique_id, in lower case."""
    names = {node.name.casefold(), node.display_name.casefold()}
    if node.source_name:
        names.add(f"{node.source_name}.{node.name}".casefold())
    return names


def not_followed(parsed: Sequence[Statement]) -> list[Statement]:
    """The same statements, marked as not followed."""
    return [statement._replace(is_query=False) for statement in parsed]


def is_one_query(parsed: list[Statement] | Reason) -> bool:
    """Whether the SQL of an asset is one SELECT, which writes nothing by itself."""
    return not isinstance(parsed, Reason) and len(parsed) == 1 and parsed[0].is_query


def explained(node: Node, flow: Flow) -> Node:
    """A node with the expressions of its columns, as far as the declaration has them."""
    texts = {
        column_flow.target: text
        for column_flow in flow.columns or ()
        if (text := column_flow.expression or column_flow.transformation) is not None
        and text.lower() not in KINDS
    }
    if not texts:
        return node
    columns = dict(node.columns)
    by_name = {(column.name or key).lower(): key for key, column in columns.items()}
    for target, text in texts.items():
        key = by_name.get(target.lower(), target)
        column = columns.get(key) or Column(name=target)
        columns[key] = msgspec.structs.replace(
            column, more={**(column.more or {}), EXPRESSION: text}
        )
    return msgspec.structs.replace(node, columns=columns)


EXPRESSION: Final = "ripple_transformation"
"""Where `Column.more` has how a column is made, as an asset's declaration says it."""


def declared_expressions(node: Node) -> dict[str, str]:
    """How columns are made, as declared assets say it, by their names in lower case."""
    return {
        (column.name or key).lower(): str(text)
        for key, column in node.columns.items()
        if column.more and (text := column.more.get(EXPRESSION))
    }


def text_of(asset: DeclaredAsset) -> str:
    """All that a declaration says of the data, as text: without owner and schedule."""
    definition = msgspec.structs.replace(
        asset,
        place="",
        description="",
        owner={},
        tags=(),
        schedule=None,
        meta={},
        last_seen=None,
        runs=(),
        assertions=(),
        columns=tuple((c.name, c.type) for c in asset.columns),
        reads=tuple(msgspec.structs.replace(f, place="") for f in asset.reads),
        writes=tuple(msgspec.structs.replace(f, place="") for f in asset.writes),
    )
    return msgspec.json.encode(definition).decode()


def dialect_note(asset: AssetNode) -> Reason | None:
    """Why SQL that can be parsed is not followed: the rules of its dialect are not implemented here."""
    if asset.declared.sql is None or asset.dialect in KNOWN:
        return None
    return Code.DIALECT_NOT_KNOWN(dialect=asset.dialect)
