"""What Python code declares of itself: the datasets it reads and writes, and where columns come from.

Nothing but the standard library is imported here: it is part of other people's programs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

INDIRECT: Final = frozenset({"JOIN", "FILTER", "GROUP_BY", "SORT", "WINDOW", "CONDITIONAL"})
DIRECT: Final = frozenset({"IDENTITY", "TRANSFORMATION", "AGGREGATION"})

_ID: Final = re.compile(
    r"(api|dbt_model|file|kafka|ml_model|mlflow|model|stream|table|topic):([^/\s].*)"
)
"""The id of an asset that holds data, or is a trained model. (The types are those of `artifacts.assets_file`,
which is not imported here: it takes time in somebody else's program.)"""
_URL: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://([^/]+)/(.+?)/*")
_FILE: Final = re.compile(r"(?:file:(?://)?)?(/.+?)/*")


class DatasetName(NamedTuple):
    """The identity of a dataset in OpenLineage."""

    namespace: str
    name: str


def file_dataset(location: str) -> DatasetName | None:
    """A place where files are, as a dataset; None for what is no such place.

    Example:
        >>> file_dataset("s3://lake/silver/orders/")
        DatasetName(namespace='s3://lake', name='silver/orders')
        >>> file_dataset("/data/orders.parquet")
        DatasetName(namespace='file', name='/data/orders.parquet')
    """
    location = location.strip()
    if url := _URL.fullmatch(location):
        return DatasetName(f"{url[1]}://{url[2]}", url[3])
    path = _FILE.fullmatch(location)
    return DatasetName("file", path[1]) if path else None


@dataclass(frozen=True)
class Dataset:
    """A dataset that code reads or writes.

    Attributes:
        namespace: where it is: ``s3://lake``, ``postgres://db.internal:5432``; an empty one is the job's.
        name: what it is called there: ``silver/orders``, ``shop.public.orders``.
        columns: their names, or names and types, where they are to be known.
        table: namespace and name of the table whose data is there, as a catalog has it.

    Example:
        >>> Dataset("s3://lake", "silver/orders", columns={"order_id": "bigint"})
        Dataset(namespace='s3://lake', name='silver/orders', columns={'order_id': 'bigint'}, table=None)
    """

    namespace: str
    name: str
    columns: Mapping[str, str | None] | Sequence[str] = ()
    table: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.namespace, str) or not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a Dataset has a namespace and a name, not {self!r}")

    @classmethod
    def of(cls, dataset: Dataset | str) -> Dataset:
        """A dataset as it is written: a URL, an absolute path, an asset's id, or a name in the job's namespace.

        The id (``table:raw_events``) means what it means in ripple_assets.yml.

        Example:
            >>> Dataset.of("s3://lake/silver/orders").name, Dataset.of("silver.orders").name
            ('silver/orders', 'silver.orders')
        """
        if isinstance(dataset, cls):
            return dataset
        if not isinstance(dataset, str) or not dataset.strip():
            raise ValueError(f"a dataset is a text or a Dataset, not {dataset!r}")
        place = file_dataset(dataset)
        if place:
            return cls(*place)
        id_ = _ID.fullmatch(dataset.strip())
        return cls(id_[1], id_[2]) if id_ else cls("", dataset.strip())

    @property
    def written(self) -> str:
        """It as one text, as `of` takes it."""
        if _ID.fullmatch(f"{self.namespace}:{self.name}"):
            return f"{self.namespace}:{self.name}"
        if not self.namespace or self.namespace == "file":
            return self.name
        return f"{self.namespace}/{self.name}"

    def types(self) -> dict[str, str | None]:
        """Its columns and their types."""
        if isinstance(self.columns, Mapping):
            return dict(self.columns)
        return dict.fromkeys(self.columns)


Column = tuple["Dataset | str", str | None]


@dataclass(frozen=True)
class ColumnLineage:
    """Where a column of an output comes from.

    Attributes:
        output: the column: ``total``, or with its dataset where there are several outputs:
            ``gold.revenue.total``, or ``(dataset, "total")``. None, or ``(dataset, None)``: what decides
            which rows there are.
        inputs: the columns it is computed from, written in the same way; ``(dataset, None)`` is the rows
            of one, as ``count(*)`` counts them.
        transformation: how, for people.
        subtype: OpenLineage's: IDENTITY, TRANSFORMATION, AGGREGATION, or (INDIRECT) JOIN, FILTER,
            GROUP_BY, SORT, WINDOW, CONDITIONAL. By default IDENTITY where a column is one other
            one and no transformation is named, else TRANSFORMATION; for rows FILTER.
        masking: whether the values cannot be told from the output.

    Example:
        >>> ColumnLineage("total", ["silver.orders.amount"], "SUM(amount)", subtype="AGGREGATION").type
        'DIRECT'
    """

    output: str | Column | None
    inputs: Sequence[str | Column]
    transformation: str = ""
    subtype: str = ""
    masking: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.inputs, str):
            raise ValueError(f"inputs are a list of columns, not {self.inputs!r}")
        if self.subtype and self.subtype not in DIRECT | INDIRECT:
            near = difflib.get_close_matches(self.subtype.upper(), DIRECT | INDIRECT, n=1)
            subtypes = ", ".join(sorted(DIRECT | INDIRECT))
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"no subtype {self.subtype!r}{hint} It is one of {subtypes}")
        if self._is_rows and self.subtype in DIRECT:
            raise ValueError(f"rows do not depend on a column by {self.subtype}")

    @property
    def _is_rows(self) -> bool:
        return self.output is None or (isinstance(self.output, tuple) and self.output[1] is None)

    @property
    def how(self) -> str:
        """The subtype, given or not."""
        if self.subtype:
            return self.subtype
        if self._is_rows:
            return "FILTER"
        alone = len(self.inputs) == 1 and not self.transformation and not self.masking
        return "IDENTITY" if alone else "TRANSFORMATION"

    @property
    def type(self) -> str:
        """DIRECT or INDIRECT."""
        return "INDIRECT" if self.how in INDIRECT else "DIRECT"


class ResolvedColumns(NamedTuple):
    """A `ColumnLineage` whose datasets are known.

    Attributes:
        column: of the output; None for its rows.
        inputs: dataset and column; None stands for the rows.
    """

    output: Dataset
    column: str | None
    inputs: tuple[tuple[Dataset, str | None], ...]
    lineage: ColumnLineage


@dataclass(frozen=True)
class Declared:
    """All that is declared of a job.

    Raises:
        ValueError: a column is of a dataset that is not declared, or of one that is not clear.
    """

    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    columns: tuple[ResolvedColumns, ...] = field(default=())

    @classmethod
    def of(
        cls,
        inputs: Iterable[Dataset | str] | Dataset | str = (),
        outputs: Iterable[Dataset | str] | Dataset | str = (),
        columns: Iterable[ColumnLineage] = (),
    ) -> Declared:
        """What was written, with each column's dataset looked up."""
        return cls().adding(inputs, outputs, columns)

    def adding(
        self,
        inputs: Iterable[Dataset | str] | Dataset | str = (),
        outputs: Iterable[Dataset | str] | Dataset | str = (),
        columns: Iterable[ColumnLineage] = (),
    ) -> Declared:
        """The same with more."""
        read = _unique([*self.inputs, *_datasets(inputs)])
        written = _unique([*self.outputs, *_datasets(outputs)])
        resolved = list(self.columns)
        for lineage in columns:
            if not isinstance(lineage, ColumnLineage):
                raise ValueError(f"columns are ColumnLineage(output, inputs), not {lineage!r}")
            output, column = _resolved(lineage.output, written, "output")
            input_columns = [_resolved(one, read, "input") for one in lineage.inputs]
            resolved.append(ResolvedColumns(output, column, tuple(input_columns), lineage))
        return Declared(read, written, tuple(resolved))


def _datasets(datasets: Iterable[Dataset | str] | Dataset | str) -> list[Dataset]:
    return [
        Dataset.of(one)
        for one in ([datasets] if isinstance(datasets, (str, Dataset)) else datasets)
    ]


def _unique(datasets: list[Dataset]) -> tuple[Dataset, ...]:
    by_name: dict[tuple[str, str], Dataset] = {}
    for dataset in datasets:
        key = dataset.namespace, dataset.name
        if key not in by_name or dataset.columns or dataset.table:
            by_name[key] = dataset
    return tuple(by_name.values())


def _resolved(
    written: str | Column | None, datasets: tuple[Dataset, ...], what: str
) -> tuple[Dataset, str | None]:
    """The dataset and the column that a text means."""
    if isinstance(written, tuple):
        dataset, column = Dataset.of(written[0]).written, written[1]
    elif written is None or "." not in written:
        if len(datasets) != 1:
            name = "the rows" if written is None else repr(written)
            raise ValueError(
                f"of which {what} is {name}? There are {len(datasets)}: write (dataset, column)"
            )
        return datasets[0], written
    else:
        dataset, _, column = written.rpartition(".")
    for one in datasets:
        if dataset in (one.written, one.name):
            return one, column
    names = [one.written for one in datasets]
    near = difflib.get_close_matches(dataset, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"declared: {', '.join(names) or 'none'}"
    raise ValueError(f"{dataset} is no {what} of this job; {hint}")
