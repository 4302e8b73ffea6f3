"""`ripple_assets.yml`: the declared assets, which feed or read a dbt project and which dbt does not build.

Only the shape of the file is judged here. What its names mean is found out over a project
(`graph.assets.declared_graph`). Whatever is wrong is one line: the file, the line in it, what is wrong there
and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.artifacts.node_names import did_you_mean
from dbt_ripple.artifacts.project import RunResult
from dbt_ripple.artifacts.read_yaml import check_bounds
from dbt_ripple.errors import RippleError

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node as YamlNode

TYPES: Final = (
    *("analysis", "api", "application", "dag", "dashboard", "dbt_model", "file", "job"),
    *("ml_feature_set", "ml_model", "notebook", "report", "spark_job", "stream", "table", "topic"),
)
"""What an asset can be."""

OF_PREFIX: Final[Mapping[str, str]] = {
    **{name: name for name in TYPES},
    **dict.fromkeys(("airflow", "dagster", "mage", "prefect"), "dag"),
    **dict.fromkeys(("mlflow", "model"), "ml_model"),
    "databricks": "job",
    "feature_set": "ml_feature_set",
    "flink": "stream",
    "glue": "spark_job",
    "jupyter": "notebook",
    "kafka": "topic",
    "looker": "dashboard",
    "metabase": "dashboard",
    "powerbi": "dashboard",
    "spark": "spark_job",
    "superset": "dashboard",
    "tableau": "dashboard",
}
"""The type of an asset that says none, by what stands before the colon of its id."""

DATASETS: Final = frozenset({"api", "dbt_model", "file", "stream", "table", "topic"})
"""Types that SQL may read by name."""

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    **{name.lower(): ("DIRECT", name) for name in ("IDENTITY", "TRANSFORMATION", "AGGREGATION")},
    **{
        name.lower(): ("INDIRECT", name)
        for name in ("JOIN", "FILTER", "GROUP_BY", "SORT", "WINDOW", "CONDITIONAL")
    },
}
"""What ``transformation`` may say in one word: OpenLineage's subtypes. Anything else is a text."""

COLLECTED: Final = "collected events of "
"""What the place of an asset begins with that no file declares."""

WHOLE: Final = "*"
"""As a source of a `ColumnFlow` all columns and rows of what is read; as a target all of what is written."""

_ID: Final = re.compile(r"([A-Za-z][\w-]*):([^\s:+@,'\"]+)")
_AT: Final = re.compile(r"\$((?:\.\w+|\[(?:\d+|\.\.\.)\])*)")


class AssetColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of an asset, as it is declared."""

    name: str
    type: str | None = None
    description: str = ""
    pii: str | bool | None = None


class ColumnFlow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns of one side that a column of the other side is made of.

    Attributes:
        sources: ``from``: of what is read, the columns there; of what is written, those of the asset.
        target: ``to``: of what is read, the asset's column; of what is written, the column there. Where
            it is not given, it has the name of the one it comes from.
        transformation: one of `KINDS`, or how it is made, in words or SQL; without, it is the value as it is.
        masking: whether the value is hidden on the way.
        expression: how it is made, where an event says that beside the kind.
    """

    sources: tuple[str, ...]
    target: str
    transformation: str | None = None
    masking: bool = False
    expression: str | None = None


class Flow(msgspec.Struct, frozen=True):
    """What an asset reads or writes.

    Attributes:
        node: as it is named in the file.
        columns: None where no columns are named; empty for the rows alone.
        place: where it stands, to be named in an error.
    """

    node: str
    columns: tuple[ColumnFlow, ...] | None
    place: str


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """A check of a dataset that collected events tell of: of Great Expectations, Soda or the like.

    Attributes:
        unique_id: of the test that it is in the graph.
        name: what the producer calls it.
        kind: ``not_null`` and the like.
        node: the relation or asset it is about, by unique_id.
        column: None of one that is about all of it.
        severity: ``error`` or ``warn``, where it is given.
        results: of each run, the oldest first.
    """

    unique_id: str
    name: str
    kind: str
    node: str
    column: str | None = None
    severity: str | None = None
    description: str = ""
    results: tuple[RunResult, ...] = ()


class DeclaredAsset(msgspec.Struct, frozen=True, kw_only=True):
    """One asset: of the file, or one that collected events tell of.

    Attributes:
        id: as people write it, `airflow:load_orders`.
        type: one of `TYPES`.
        owner: a name or an address, or a mapping with name, email and slack.
        sql: of a job; ``dialect`` says of which engine, by default the project's.
        last_seen: when `register` or `capture` last showed it.
        retired: since when it is history; it is then no part of the graph.
        place: the file and the line it begins in.
        collected: whether events tell of it. Names that mean nothing are then left out.
        kinds_missing: whether its events say which columns are made of which, but not what rows are
            filtered and joined by.
        runs: of the job, that have ended.
        assertions: that the job has checked.
    """

    id: str
    type: str
    place: str
    source_ref: str | None = None
    description: str = ""
    owner: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    schedule: str | None = None
    meta: dict[str, Any] = {}
    columns: tuple[AssetColumn, ...] = ()
    reads: tuple[Flow, ...] = ()
    writes: tuple[Flow, ...] = ()
    sql: str | None = None
    dialect: str | None = None
    last_seen: date | None = None
    retired: date | None = None
    collected: bool = False
    kinds_missing: bool = False
    runs: tuple[RunResult, ...] = ()
    assertions: tuple[Assertion, ...] = ()

    @property
    def name(self) -> str:
        """The id without what stands before the colon."""
        return self.id.partition(":")[2]

    @property
    def unique_id(self) -> str:
        """The id in the graph: ``asset.airflow.load_orders``."""
        prefix, _, name = self.id.partition(":")
        return f"asset.{prefix}.{name}"


class _RawAsset(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    type: str | None = None
    source_ref: str | None = None
    description: str = ""
    owner: str | dict[str, str] | None = None
    tags: list[str] | str = []
    schedule: str | None = None
    meta: dict[str, Any] = {}
    columns: list[str | AssetColumn] = []
    reads: list[Any] = []
    writes: list[Any] = []
    sql: str | None = None
    dialect: str | None = None
    last_seen: date | None = None
    retired: date | None = None


class _RawFile(msgspec.Struct, forbid_unknown_fields=True):
    assets: list[Any] = []


class _RawFlow(msgspec.Struct, forbid_unknown_fields=True):
    node: str
    columns: list[Any] | dict[str, Any] | None = None


class _RawColumn(msgspec.Struct, forbid_unknown_fields=True, rename={"sources": "from"}):
    sources: str | list[str]
    to: str | None = None
    transformation: str | None = None
    masking: bool = False


def read_assets(files: Iterable[Path]) -> list[DeclaredAsset]:
    """The assets of some files, in order; those that are retired, too.

    Raises:
        RippleError: a file cannot be read, or what it says is not valid.
    """
    assets: list[DeclaredAsset] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error.strerror)
            raise RippleError(f"cannot be read: {why}", str(file), "give a text file") from None
        assets += parse_assets(text, str(file))
    by_id: dict[str, DeclaredAsset] = {}
    for asset in assets:
        other = by_id.setdefault(asset.id.casefold(), asset)
        if other is not asset:
            raise RippleError(
                f"{asset.id} is declared twice, first at {other.place}",
                asset.place,
                "keep one of the two",
            )
    return assets


def parse_assets(text: str, where: str) -> list[DeclaredAsset]:
    """The assets of one file's text.

    Args:
        text: YAML.
        where: the file, for errors.

    Raises:
        RippleError: as `read_assets`.

    Example:
        >>> (asset,) = parse_assets('''
        ... assets:
        ...   - id: airflow:load_orders
        ...     writes: [raw.raw_orders]
        ... ''', "ripple_assets.yml")
        >>> asset.type, asset.unique_id, asset.place
        ('dag', 'asset.airflow.load_orders', 'ripple_assets.yml:3')
    """
    document, tree = _yaml(text, where)
    if document is None:
        return []
    reader = _AssetsParser(where, tree)
    if not isinstance(document, dict):
        raise reader.error("is no mapping", (), "begin with `assets:`, and list them below it")
    if document.get("assets", ()) is None:
        document = {**document, "assets": []}
    file = reader.convert(document, _RawFile, ())
    return [reader.asset(definition, ("assets", i)) for i, definition in enumerate(file.assets)]


def _yaml(text: str, where: str) -> tuple[Any, YamlNode | None]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        check_bounds(text, where)
        yaml = YAML(typ="safe", pure=True)
        tree = yaml.compose(text)
        return (None if tree is None else yaml.constructor.construct_document(tree)), tree
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = where if mark is None else f"{where}:{mark.line + 1}"
        problem = " ".join(str(error.problem or error.context or "").split())
        problem = problem.partition(" To suppress")[0].rstrip(".") or "it is no YAML"
        fix = "correct it as YAML"
        if "\\t" in problem or "'\t'" in problem or _tab(text, mark):
            problem, fix = "a tab stands where YAML wants spaces", "indent by spaces"
        raise RippleError(problem, place, fix) from None
    except (YAMLError, RecursionError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise RippleError(f"cannot be read: {problem}", where, "correct it as YAML") from None


def _tab(text: str, mark: Any) -> bool:
    lines = text.splitlines()
    if mark is None or mark.line >= len(lines):
        return False
    line = lines[mark.line]
    return "\t" in line[: len(line) - len(line.lstrip())]


_Path = tuple[str | int, ...]


class _AssetsParser:
    """Turns what a file says into assets, and knows on which line each thing stands."""

    def __init__(self, where: str, tree: YamlNode | None) -> None:
        self.where = where
        self.tree = tree

    def line(self, path: _Path) -> int:
        """The line of what a path leads to; of what is not there, of what is around it."""
        node, line = self.tree, 1
        if node is not None:
            line = node.start_mark.line + 1
        for step in path:
            position = None
            value = getattr(node, "value", None)
            if isinstance(step, int) and isinstance(value, list) and step < len(value):
                position = value[step]
                line = position.start_mark.line + 1 if not isinstance(position, tuple) else line
            elif isinstance(value, list):
                for pair in value:
                    if isinstance(pair, tuple) and pair[0].value == step:
                        position = pair[1]
                        line = pair[0].start_mark.line + 1
            if position is None or isinstance(position, tuple):
                break
            node = position
        return line

    def place(self, path: _Path) -> str:
        return f"{self.where}:{self.line(path)}"

    def error(self, what: str, path: _Path, fix: str) -> RippleError:
        return RippleError(what, self.place(path), fix)

    def convert(self, value: Any, as_type: type[Any], path: _Path) -> Any:
        """The declaration, as a struct.

        Raises:
            RippleError: it has an unknown key, lacks one, or a value is of the wrong kind.
        """
        field_names = {field.encode_name for field in msgspec.structs.fields(as_type)}
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str) or key not in field_names:
                    fix = did_you_mean(
                        str(key), field_names, f"known are {', '.join(sorted(field_names))}"
                    )
                    raise self.error(f"unknown key {str(key)!r}", (*path, key), fix)
            for field in msgspec.structs.fields(as_type):
                if field.required and field.encode_name not in value:
                    raise self.error(f"`{field.encode_name}` is missing", path, "add it")
        try:
            return msgspec.convert(value, as_type)
        except msgspec.ValidationError as error:
            text, _, at = str(error).partition(" - at `")
            inner = _steps(at)
            of = f"`{inner[0]}`: " if inner else ""
            what = f"{of}{text[:1].lower()}{text[1:]}"
            raise self.error(what, (*path, *inner), "see docs/assets.md") from None

    def asset(self, definition: Any, path: _Path) -> DeclaredAsset:
        if not isinstance(definition, dict):
            raise self.error("an asset is a mapping", path, "begin it with `- id: TYPE:NAME`")
        raw: _RawAsset = self.convert(definition, _RawAsset, path)
        prefix = checked_id(raw.id, self.place((*path, "id")))
        type_ = raw.type or OF_PREFIX.get(prefix)
        if type_ is None:
            raise self.error(
                f"{raw.id} has no type, and {prefix!r} says none",
                path,
                f"add `type:`, one of {', '.join(TYPES)}",
            )
        if type_ not in TYPES:
            fix = did_you_mean(type_, TYPES, f"the types are {', '.join(TYPES)}")
            raise self.error(f"{type_!r} is no type of an asset", (*path, "type"), fix)
        owner = {"name": raw.owner} if isinstance(raw.owner, str) else dict(raw.owner or {})
        if isinstance(raw.owner, str) and "@" in raw.owner:
            owner = {"email": raw.owner}
        if raw.sql is None and raw.dialect is not None:
            raise self.error("`dialect` stands without `sql`", (*path, "dialect"), "add the SQL")
        if raw.sql is not None and not raw.sql.strip():
            raise self.error("`sql` is empty", (*path, "sql"), "give the job's SQL, or take it out")
        columns: dict[str, AssetColumn] = {}
        for i, entry in enumerate(raw.columns):
            column = AssetColumn(entry) if isinstance(entry, str) else entry
            at = (*path, "columns", i)
            if not column.name.strip():
                raise self.error("a column has no name", at, "give it one")
            if column.name.lower() in columns:
                raise self.error(f"column {column.name} is listed twice", at, "list it once")
            columns[column.name.lower()] = column
        return DeclaredAsset(
            id=raw.id,
            type=type_,
            place=self.place(path),
            source_ref=raw.source_ref,
            description=raw.description,
            owner=owner,
            tags=(raw.tags,) if isinstance(raw.tags, str) else tuple(raw.tags),
            schedule=raw.schedule,
            meta=raw.meta,
            columns=tuple(columns.values()),
            reads=self.flows(raw.reads, (*path, "reads")),
            writes=self.flows(raw.writes, (*path, "writes")),
            sql=raw.sql,
            dialect=raw.dialect,
            last_seen=raw.last_seen,
            retired=raw.retired,
        )

    def flows(self, entries: list[Any], path: _Path) -> tuple[Flow, ...]:
        flows = []
        for i, entry in enumerate(entries):
            at = (*path, i)
            if isinstance(entry, str):
                entry = {"node": entry}
            if not isinstance(entry, dict):
                fix = "give a name, or a mapping with `node` and `columns`"
                raise self.error(f"{entry!r} is no name", at, fix)
            raw: _RawFlow = self.convert(entry, _RawFlow, at)
            if not raw.node.strip():
                raise self.error("`node` is empty", (*at, "node"), "name a node")
            columns = None
            if raw.columns is not None:
                columns = tuple(self.columns(raw.columns, (*at, "columns"), entry))
            flows.append(Flow(raw.node.strip(), columns, self.place(at)))
        return tuple(flows)

    def columns(self, value: Any, path: _Path, entry: dict[str, Any]) -> list[ColumnFlow]:
        if isinstance(value, dict):
            if {"from", "to"} <= value.keys():
                fix = "write `columns: [{from: A, to: B}]`, or `columns: {A: B}`"
                raise self.error("`columns` is one entry, not a list of them", path, fix)
            pairs = [
                {"from": key, "to": to}
                for key, value in value.items()
                for to in (value if isinstance(value, list) else [value])
            ]
            return [self.column(pair, (*path, pair["from"])) for pair in pairs]
        return [self.column(one, (*path, i)) for i, one in enumerate(value)]

    def column(self, definition: Any, path: _Path) -> ColumnFlow:
        if isinstance(definition, str):
            definition = {"from": definition}
        if not isinstance(definition, dict):
            fix = "give a name, or {from: A, to: B, transformation: HOW}"
            raise self.error(f"{definition!r} is no column", path, fix)
        raw: _RawColumn = self.convert(definition, _RawColumn, path)
        sources = (raw.sources,) if isinstance(raw.sources, str) else tuple(raw.sources)
        if not sources or not all(name.strip() for name in sources):
            raise self.error("`from` names no column", path, "name one")
        if raw.to is None and len(sources) > 1:
            raise self.error("`from` has several columns and `to` is missing", path, "add `to`")
        target = sources[0] if raw.to is None else raw.to
        if not target.strip():
            raise self.error("`to` names no column", path, "name one")
        return ColumnFlow(sources, target, raw.transformation, raw.masking)


def checked_id(text: str, place: str) -> str:
    """What stands before the colon of an id, in lower case.

    Raises:
        RippleError: it is no id.
    """
    match = _ID.fullmatch(text)
    if match is None:
        raise RippleError(
            f"{text!r} is no id of an asset",
            place,
            "write WHAT:NAME without blanks, such as airflow:load_orders or model:churn",
        )
    if match[1] == "asset":
        raise RippleError(
            f"{text!r} begins with asset:, which means any of them",
            place,
            "say what it is: airflow:load_orders, model:churn",
        )
    return match[1].lower()


def _steps(at: str) -> _Path:
    """The steps of msgspec's `$.reads[0]`, with a closing backquote."""
    steps: list[str | int] = []
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", at):
        steps.append(int(index) if index else name)
    return tuple(steps)
