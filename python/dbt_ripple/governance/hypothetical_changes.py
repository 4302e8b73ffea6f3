"""Changes that somebody asks about: checked, and as what the analysis makes of a relation.

They are asked about by options, or in a file of proposed changes, as the pull request of a migration carries it
(``impact --changes``):

```json
{"asset_id": "raw_orders",
 "proposed_changes": [
   {"type": "column_rename", "from": "order_total", "to": "total_amount"},
   {"type": "column_drop", "column": "legacy_discount_code"},
   {"type": "column_type_change", "column": "amount", "to": "decimal(18,2)"},
   {"type": "column_add", "column": "currency", "data_type": "string", "required": true},
   {"type": "deprecation", "date": "2027-03-31"},
   {"type": "removal"}]}
```

The list alone is a file as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node, Project, did_you_mean
from dbt_ripple.changes.column_types import types_of
from dbt_ripple.errors import RippleError
from dbt_ripple.flow.data_types import TYPE_NAMES, canonical_type, same_type
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.assets.asset_nodes import ASSET, DATASET
from dbt_ripple.graph.hypothetical import HypotheticalChange
from dbt_ripple.graph.lineage import Analysis, column_names
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.traversal import column_graph

Kind = Literal["rename", "drop", "retype", "add", "deprecate", "remove"]


class Change(NamedTuple):
    """One change to a relation.

    Attributes:
        kind: deprecate announces that the relation goes, remove takes it away.
        column: empty of these two.
        to: the new name, or the type; of deprecate the day it goes (ISO), if one is given.
        required: of a new column, whether each row must have a value.
    """

    kind: Kind
    column: str = ""
    to: str = ""
    required: bool = False


def checked(node: Node, changes: Sequence[Change]) -> Change | None:
    """The change of the relation as a whole, where it is one (deprecate, remove).

    Raises:
        RippleError: there is no change, or two that contradict each other.
    """
    if not changes:
        raise RippleError("no change is given", node.spoken_name, f"say {_options_for(node)}")
    whole = next((change for change in changes if change.kind in ("deprecate", "remove")), None)
    if whole is not None and len(changes) > 1:
        raise RippleError(
            f"{whole.kind}s {node.spoken_name} with all that is in it",
            f"--{whole.kind}",
            "give it alone",
        )
    for change in changes:
        if change.kind == "rename" and change.column.strip() == change.to.strip():
            raise RippleError(
                f"{change.to} is its name already",
                f"--rename {change.column}:{change.to}",
                "give a new name",
            )
    return whole


def changed_relation(project: Project, seen: Analysis, node: Node) -> Node:
    """The node whose columns are meant: a source that a node builds is that node."""
    if node.unique_id in seen.nodes and node.resource_type in (*RELATIONS, ASSET, DATASET):
        return node
    if node.resource_type == "source" and node.relation_name:
        for other in project.nodes.values():
            if (
                other.unique_id in seen.nodes
                and (other.relation_name or "").lower() == node.relation_name.lower()
            ):
                return other
    raise RippleError(
        f"is {_article(node.resource_type)}, which has no columns",
        node.display_name,
        "name a model, seed, snapshot, source or asset, or a metric, a semantic model or a saved query",
    )


def _options_for(node: Node) -> str:
    """What can be done to a node, in the words of the command line."""
    if node.resource_type == "metric":
        return f"--deprecate, --remove, or --rename {node.name}:NEW"
    if node.resource_type == "saved_query":
        return "--drop a, --deprecate or --remove"
    if node.resource_type == "semantic_model":
        return "--rename a:b, --drop c, --deprecate or --remove"
    return "--rename a:b, --drop c, --retype d:type, --add e:type, --deprecate or --remove"


def _article(noun: str) -> str:
    words = noun.replace("_", " ")
    return f"an {words}" if words[:1] in "aeio" else f"a {words}"


def hypothetical_change(
    project: Project, seen: Analysis, node: Node, changes: Sequence[Change]
) -> HypotheticalChange:
    """What the changes make of a relation.

    Raises:
        RippleError: as `governance.impact.impact`.
    """
    analysed = seen.nodes[node.unique_id]
    names = column_names(node, analysed, project.catalog.get(node.unique_id, ()))
    for column in column_graph(seen.edges).columns(node.unique_id):  # as `trace` knows them
        names.setdefault(column.lower(), column)
    renamed, dropped, retyped, added = _by_kind(project, node, names, changes)
    for column in [*renamed, *retyped]:
        if column in dropped:
            raise RippleError(
                f"{column} is dropped and changed at once", "--drop", "do one of the two"
            )
    _check_new_names(node, names, renamed, dropped, added)
    # Of what nothing reads, the analysis may not know.
    more = [
        name
        for name in names.values()
        if name not in analysed.columns and (name in renamed or name in dropped or name in retyped)
    ]
    return HypotheticalChange(
        dataclasses.replace(
            analysed,
            columns=[*analysed.columns, *more],
            fingerprints=[*analysed.fingerprints, *("00" for _ in more)],
            expressions=[*analysed.expressions, *(None for _ in more)],
        ),
        renamed,
        frozenset(dropped),
        retyped,
        any(change.kind == "remove" for change in changes),
        added,
    )


def _by_kind(
    project: Project, node: Node, names: dict[str, str], changes: Sequence[Change]
) -> tuple[dict[str, str], dict[str, None], dict[str, str], dict[str, str]]:
    """New names and types by column: renamed, dropped, retyped and added ones, each checked by itself."""
    dialect = dialect_of(project.metadata.adapter_type)
    types = types_of(project, node.unique_id)
    renamed: dict[str, str] = {}
    dropped: dict[str, None] = {}
    retyped: dict[str, str] = {}
    added: dict[str, str] = {}
    for change in changes:
        if change.kind == "remove":
            continue
        if change.kind == "add":
            name = change.column.strip()
            option = f"--add {name}:{change.to}"
            if not name or name.lower() in map(str.lower, added):
                raise RippleError(f"{name!r} is no new name", option, "give each column one name")
            added[name] = _type(name, change.to, None, dialect, option, "add")
            continue
        column = _column(node, names, change)
        option = f"--{change.kind} {change.column}"
        if change.kind == "drop":
            dropped[column] = None
        elif change.kind == "rename":
            if column in renamed and renamed[column] != change.to:
                raise RippleError(
                    f"{column} is already renamed to {renamed[column]}", option, "give one new name"
                )
            if not change.to.strip():
                raise RippleError("the new name is missing", option, f"say --rename {column}:NEW")
            renamed[column] = change.to
        else:
            retyped[column] = _type(column, change.to, types.get(column.lower()), dialect, option)
    return renamed, dropped, retyped, added


def _check_new_names(
    node: Node,
    names: dict[str, str],
    renamed: dict[str, str],
    dropped: dict[str, None],
    added: dict[str, str],
) -> None:
    """Refuse a new name that a column of the relation has."""
    left = {key for key, name in names.items() if name not in renamed and name not in dropped}
    for column, to in renamed.items():
        if to.lower() in left:
            raise RippleError(
                f"{node.display_name} has a column {names.get(to.lower(), to)} already",
                f"--rename {column}:{to}",
                "choose another name, or rename or drop the other column as well",
            )
        left.add(to.lower())
    for column in added:
        if column.lower() in left:
            raise RippleError(
                f"{node.display_name} has a column {names.get(column.lower(), column)} already",
                f"--add {column}:{added[column]}",
                "choose another name",
            )


def _column(node: Node, names: dict[str, str], change: Change) -> str:
    column = names.get(change.column.strip().lower())
    if column is not None and column != ROWS:
        return column
    column_names = list(names.values())
    otherwise = "none of its columns is known: `dbt docs generate` lists them"
    if column_names:
        otherwise = f"it has {', '.join(column_names[:8])}"
    raise RippleError(
        f"{node.display_name} has no column {change.column!r}",
        f"--{change.kind}",
        did_you_mean(change.column, column_names, otherwise),
    )


def _type(
    column: str, to: str, was: str | None, dialect: str, option: str, do: str = "retype"
) -> str:
    canonical = canonical_type(to, dialect) or (to if was and same_type(was, to, dialect) else None)
    if canonical is None:
        raise RippleError(
            f"{to!r} is no type of {dialect}",
            option,
            did_you_mean(to.partition("(")[0], TYPE_NAMES, f"say --{do} {column}:TYPE"),
        )
    if was is not None and same_type(was, to, dialect):
        raise RippleError(f"{column} is {was} already", option, "give another type")
    return canonical


class _Rename(msgspec.Struct, tag_field="type", tag="column_rename", forbid_unknown_fields=True):
    old: str = msgspec.field(name="from")
    to: str

    def change(self) -> Change:
        return Change("rename", self.old, self.to)


class _Drop(msgspec.Struct, tag_field="type", tag="column_drop", forbid_unknown_fields=True):
    column: str

    def change(self) -> Change:
        return Change("drop", self.column)


class _Retype(
    msgspec.Struct, tag_field="type", tag="column_type_change", forbid_unknown_fields=True
):
    column: str
    to: str

    def change(self) -> Change:
        return Change("retype", self.column, self.to)


class _Add(msgspec.Struct, tag_field="type", tag="column_add", forbid_unknown_fields=True):
    column: str
    data_type: str
    required: bool = False

    def change(self) -> Change:
        return Change("add", self.column, self.data_type, self.required)


class _Deprecation(msgspec.Struct, tag_field="type", tag="deprecation", forbid_unknown_fields=True):
    date: str = ""

    def change(self) -> Change:
        return Change("deprecate", to=self.date)


class _Removal(msgspec.Struct, tag_field="type", tag="removal", forbid_unknown_fields=True):
    def change(self) -> Change:
        return Change("remove")


_Proposed = _Rename | _Drop | _Retype | _Add | _Deprecation | _Removal
TYPES: Final = (
    "column_rename",
    "column_drop",
    "column_type_change",
    "column_add",
    "deprecation",
    "removal",
)


class ChangesFile(msgspec.Struct, forbid_unknown_fields=True):
    """What would be changed, and of which node; ``POST /lineage/impact`` takes the same."""

    proposed_changes: list[_Proposed]
    asset_id: str | None = None


def read_proposed(file: Path) -> tuple[str | None, list[Change]]:
    """The asset that the file names, if it does, and the changes.

    Raises:
        RippleError: it cannot be read, or says what is no change.
    """
    where = str(file)
    try:
        document: Any = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RippleError(f"cannot be read: {error}", where, "write it as JSON") from None
    return proposed_in(document, where)


def proposed_in(document: Any, where: str) -> tuple[str | None, list[Change]]:
    """The same of a document that is read already.

    Raises:
        RippleError: it says what is no change.
    """
    if isinstance(document, list):
        document = {"proposed_changes": document}
    listed = document.get("proposed_changes") if isinstance(document, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind is not None and kind not in TYPES:
            fix = did_you_mean(str(kind), TYPES, f"say {', '.join(TYPES)}")
            raise RippleError(f"no change is a {kind!r}", where, fix)
    try:
        content = msgspec.convert(document, ChangesFile)
    except msgspec.ValidationError as error:
        raise RippleError(
            str(error), where, "see docs/impact.md: it has `proposed_changes`, a list"
        ) from None
    return content.asset_id, [proposed.change() for proposed in content.proposed_changes]
