"""Writes `ripple_assets.yml`: registers assets and retires them, with comments and order kept.

What comes out is read again before it is written: a file that is valid never becomes one that is not. It is
written at once (a new file takes the place of the old one), so that nobody reads half of it.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import Project, did_you_mean
from dbt_ripple.artifacts.assets_file import (
    OF_PREFIX,
    TYPES,
    DeclaredAsset,
    checked_id,
    parse_assets,
)
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.reasons import names_missing

_HEADER: Final = (
    "# What stands around this dbt project and dbt does not build; docs/assets.md of dbt_ripple has every key.\n"
    "assets: []\n"
)
_ENTRY: Final = re.compile(r"^( *)- ", re.M)


class Registration(msgspec.Struct, kw_only=True):
    """An asset to be written down; what is not given stays as it is in the file.

    Attributes:
        reads: each a name, or a mapping with `node` and `columns`.
        writes: likewise.
    """

    id: str
    type: str | None = None
    source_ref: str | None = None
    description: str | None = None
    owner: str | None = None
    tags: Sequence[str] = ()
    schedule: str | None = None
    reads: Sequence[str | Mapping[str, Any]] = ()
    writes: Sequence[str | Mapping[str, Any]] = ()
    sql: str | None = None
    dialect: str | None = None


class Edited(msgspec.Struct, kw_only=True):
    """A file as it would be.

    Attributes:
        text: all of it.
        changed: the assets that it would change, by id, each with what happens to it.
    """

    file: Path
    text: str
    changed: dict[str, str]

    def write(self) -> None:
        """Put it in the place of the file.

        Raises:
            RippleError: it cannot be written.
        """
        target = self.file.resolve()  # a link stays one
        try:
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(self.text)
                    stream.flush()
                    os.fsync(stream.fileno())
                Path(name).chmod(mode)
                Path(name).replace(target)
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise RippleError(
                f"cannot be written: {error.strerror}", str(self.file), "make its folder writable"
            ) from None


def registered(
    file: Path,
    registrations: Sequence[Registration],
    project: Project,
    analysis: Analysis,
    others: Sequence[DeclaredAsset] = (),
    today: date | None = None,
) -> Edited:
    """A file with some assets registered, or shown again.

    Args:
        file: to be written; it need not be there.
        registrations: in order.
        project: dbt's, to which the names refer.
        analysis: of it.
        others: the assets of other files; one of these that nothing more is said of is left as it is there.
        today: what `last_seen` says; by default the day it is.

    Raises:
        RippleError: an id, a type or a name is not valid, with the nearest that is; the file is left alone.
    """
    day = today or date.today()
    document, text = _read(file)
    entries = document["assets"]
    changed: dict[str, str] = {}
    elsewhere = {asset.id.casefold(): asset.place for asset in others}
    for one in registrations:
        if (place := elsewhere.get(one.id.casefold())) is not None:
            if not any(getattr(one, name) for name in one.__struct_fields__ if name != "id"):
                continue
            raise RippleError(f"is declared in {place}", one.id, "edit it there, or name that file")
        prefix = checked_id(one.id, one.id)
        type_ = one.type
        if type_ is not None and type_ not in TYPES:
            fix = did_you_mean(type_, TYPES, f"the types are {', '.join(TYPES)}")
            raise RippleError(f"{type_!r} is no type of an asset", f"--type {type_}", fix)
        entry = next((e for e in entries if str(e["id"]).casefold() == one.id.casefold()), None)
        if entry is None and type_ is None and prefix not in OF_PREFIX:
            fix = did_you_mean(prefix, OF_PREFIX, f"say --type, one of {', '.join(TYPES)}")
            raise RippleError(f"{prefix!r} says no type", one.id, fix)
        if entry is None:
            entry = _map({"id": one.id})
            if type_ is not None and type_ != OF_PREFIX.get(prefix):
                entry["type"] = type_
            entries.append(entry)
            changed[one.id] = "added"
        else:
            if type_ is not None and type_ != entry.get("type", OF_PREFIX.get(prefix)):
                entry["type"] = type_
            changed[one.id] = "back" if "retired" in entry else "shown again"
            entry.pop("retired", None)
        _fill(entry, one)
        entry["last_seen"] = _copied(day)
    text_after = _dumped(document, text)
    _check(text_after, str(file), registrations, project, analysis, others)
    return Edited(file=file, text=text_after, changed=changed)


def pruned(
    file: Path, days: int, others: Iterable[DeclaredAsset] = (), today: date | None = None
) -> tuple[Edited, dict[str, str]]:
    """A file in which is retired what nothing has shown for some days.

    Args:
        file: to be written.
        days: how long.
        others: the assets of other files.
        today: the day it is, by default.

    Returns:
        The file, and the assets that nothing has shown and that stay, because one that stays refers to them.

    Raises:
        RippleError: there is no such file, or it is not valid.
    """
    if not file.is_file():
        raise RippleError("no such file", str(file), "name the file by --file")
    day = today or date.today()
    document, text = _read(file)
    declared = parse_assets(text, str(file))
    names = {asset.id.casefold(): asset.id for asset in declared}
    stale = {
        asset.id
        for asset in declared
        if asset.retired is None
        and asset.last_seen is not None
        and asset.last_seen <= day - timedelta(days=days)
    }
    kept: dict[str, str] = {}
    while True:
        staying = [a for a in (*declared, *others) if a.id not in stale and a.retired is None]
        needed = {
            names[unique_id]: asset.id
            for asset in staying
            for flow in (*asset.reads, *asset.writes)
            if (unique_id := _meant(flow.node, declared)) in names and names[unique_id] in stale
        }
        if not needed:
            break
        kept |= needed
        stale -= needed.keys()
    for entry in document["assets"]:
        if str(entry["id"]) in stale:
            entry["retired"] = _copied(day)
    text_after = _dumped(document, text)
    parse_assets(text_after, str(file))
    return Edited(file=file, text=text_after, changed=dict.fromkeys(sorted(stale), "retired")), kept


def _copied(day: date) -> date:
    """A day of its own: one that stands in two places would be written as an anchor and its alias."""
    return date(day.year, day.month, day.day)


def _meant(name: str, declared: Collection[DeclaredAsset]) -> str:
    """The id, folded, that a name means, which may be written without what stands before the colon."""
    folded = name.casefold()
    same = [a.id.casefold() for a in declared if folded in (a.id.casefold(), a.name.casefold())]
    return same[0] if same else folded


def _fill(entry: Any, one: Registration) -> None:
    for name in ("source_ref", "description", "owner", "schedule", "dialect"):
        value = getattr(one, name)
        if value is not None:
            entry[name] = value
    if one.sql is not None:
        from ruamel.yaml.scalarstring import LiteralScalarString

        lines = [line.rstrip() for line in one.sql.strip().expandtabs(4).splitlines()]
        entry["sql"] = LiteralScalarString("\n".join(lines) + "\n")
    if one.tags:
        present = entry.get("tags") or []
        present = [present] if isinstance(present, str) else present
        present += [tag for tag in one.tags if tag not in present]
        entry["tags"] = present
    for key, flows in (("reads", one.reads), ("writes", one.writes)):
        if flows:
            present = entry.get(key)
            if present is None:
                present = entry[key] = []
            for flow in flows:
                _add_flow(present, flow)


def _add_flow(flows: Any, flow: str | Mapping[str, Any]) -> None:
    """Add what is read or written, in place of the entry of the same node."""
    node = flow if isinstance(flow, str) else str(flow["node"])
    for i, other in enumerate(flows):
        same = other if isinstance(other, str) else other.get("node")
        if str(same).casefold() == node.casefold():
            if not isinstance(flow, str):
                flows[i] = _map(flow)
            return
    flows.append(flow if isinstance(flow, str) else _map(flow))


def _map(content: Mapping[str, Any]) -> Any:
    from ruamel.yaml.comments import CommentedMap

    return CommentedMap(content)


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    first_entry = _ENTRY.search(text)
    offset = len(first_entry[1]) if first_entry is not None else 2
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)
    return yaml


def _read(file: Path) -> tuple[Any, str]:
    """The file as it is, as a document that keeps comments; one without assets where there is none."""
    text = _HEADER
    if file.is_file():
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RippleError(f"cannot be read: {error}", str(file), "give a text file") from None
    parse_assets(text, str(file))
    document = _yaml(text).load(text)
    if document is None:  # nothing but comments
        text = text.rstrip("\n") + "\nassets: []\n" if text.strip() else _HEADER
        document = _yaml(text).load(text)
    if document.get("assets") is None:
        document["assets"] = []
    if not document["assets"]:
        from ruamel.yaml.comments import CommentedSeq

        block = CommentedSeq()  # `[]` would be written in one line
        document["assets"] = block
    return document, text


def _dumped(document: Any, text: str) -> str:
    stream = io.StringIO()
    _yaml(text).dump(document, stream)
    return stream.getvalue()


def _check(
    text: str,
    where: str,
    registrations: Sequence[Registration],
    project: Project,
    analysis: Analysis,
    others: Iterable[DeclaredAsset],
) -> None:
    """Refuse what does not hold together over the project."""
    ids = {one.id for one in registrations}
    declared = [
        msgspec.structs.replace(asset, place=asset.id) if asset.id in ids else asset
        for asset in (*parse_assets(text, where), *others)
    ]
    for one in registrations:
        alone = [
            msgspec.structs.replace(a, reads=(), writes=(), sql=None, dialect=None)
            for a in declared
        ]
        names = DeclaredGraph(project, alone)
        for option, flows in (("--upstream", one.reads), ("--downstream", one.writes)):
            for flow in flows:
                node = flow if isinstance(flow, str) else str(flow["node"])
                names.find(node, f"{option} {node}", writes=option == "--downstream")
    graph = DeclaredGraph(project, declared)
    lineage = AssetLineage(graph, analysis)
    for one in registrations:
        unique_id = f"asset.{one.id.partition(':')[0]}.{one.id.partition(':')[2]}"
        analysed = lineage.analysis.nodes.get(unique_id)
        if analysed is None or analysed.status != "broken" or analysed.reason is None:
            continue
        missing = names_missing(analysed.reason)
        column = missing[0].rpartition(".")[2]
        column_names = [
            name
            for above in graph.assets[unique_id].above()
            if (parent := lineage.analysis.nodes.get(above)) is not None
            for name in parent.columns
        ]
        raise RippleError(
            f"reads {', '.join(missing)}, and there is no such column",
            one.id,
            did_you_mean(column, column_names, f"there are {', '.join(column_names[:8])}"),
        )
