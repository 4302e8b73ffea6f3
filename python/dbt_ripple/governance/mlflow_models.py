"""The models of an MLflow registry, with the datasets that were logged as their inputs, as assets.

Of each registered model the version counts that an alias names (``champion``, ``production``), or else the
latest. What the run that made it has logged by ``mlflow.log_input`` is what it reads: a dataset that is called
like a relation of the project, or an asset, is that; another one becomes an asset of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.governance.asset_edits import Registration

_ALIASES: Final = ("champion", "production", "prod")
_NO_ID: Final = re.compile(r"[\s:+@,'\"]+")
_TABLE_NAMES: Final = ("table_name", "delta_table_name")
_PLACES: Final = ("uri", "path", "url")


class LoggedDataset(msgspec.Struct):
    """What a dataset is called.

    Attributes:
        names: under which it may be known, best first.
        columns: those that were logged; None where MLflow has none.
        place: where it lies.
        is_table: whether it is a table of a warehouse.
    """

    names: list[str]
    columns: list[str] | None
    place: str | None
    is_table: bool


def registrations_of(
    uri: str, id_of: Callable[[str], str | None], columns_of: Callable[[str], set[str] | None]
) -> list[Registration]:
    """The models of a registry, each after the datasets that it reads.

    Args:
        uri: of MLflow: a server, a folder or a database.
        id_of: the name of a node or an asset that a dataset's name means; None where it means none.
        columns_of: the columns of it in lower case; None where they are not known for sure.

    Raises:
        RippleError: mlflow is not installed, or the registry cannot be read.
    """
    require_extra("mlflow")
    from mlflow import MlflowClient  # type: ignore[import-not-found,unused-ignore]

    try:
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        return list(_registrations(client, id_of, columns_of))
    except RippleError:
        raise
    except Exception as error:  # of a server, a database or a file
        message = " ".join(str(error).split())[:200]
        raise RippleError(
            f"MLflow cannot be read: {message}", f"--from-mlflow {uri}", "check the address"
        ) from error


def _registrations(
    client: Any, id_of: Callable[[str], str | None], columns_of: Callable[[str], set[str] | None]
) -> Iterator[Registration]:
    registered: set[str] = set()
    for model in _models(client):
        version = _version(client, model)
        reads: list[Any] = []
        run = client.get_run(version.run_id) if version is not None and version.run_id else None
        for logged in run.inputs.dataset_inputs if run is not None and run.inputs else ():
            logged_dataset = dataset(logged.dataset)
            node = next(
                (n for name in logged_dataset.names if (n := id_of(name)) is not None), None
            )
            columns_of_node = columns_of(node) if node is not None else None
            if node is None:
                kind = "table" if logged_dataset.is_table else "file"
                node = f"{kind}:{_as_id(logged_dataset.names[0])}"
                if node not in registered:
                    registered.add(node)
                    yield Registration(id=node, type=kind, source_ref=logged_dataset.place)
            columns = logged_dataset.columns
            if (
                columns is not None
                and columns_of_node is not None
                and not columns_of_node.issuperset(map(str.lower, columns))
            ):
                columns = None  # it was made of the table: any column of that may be in it
            reads.append(node if columns is None else {"node": node, "columns": columns})
        tags = dict(model.tags or {})
        yield Registration(
            id=f"model:{_as_id(model.name)}",
            type="ml_model",
            source_ref=f"models:/{model.name}" + (f"/{version.version}" if version else ""),
            description=model.description or None,
            owner=tags.get("owner"),
            reads=reads,
        )


def _models(client: Any) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_registered_models(page_token=token)
        yield from sorted(page, key=lambda model: model.name)
        token = page.token
        if not token:
            return


def _version(client: Any, model: Any) -> Any:
    """The version that counts."""
    aliases = {name.lower(): version for name, version in (model.aliases or {}).items()}
    named = next((aliases[name] for name in _ALIASES if name in aliases), None)
    if named is not None:
        return client.get_model_version(model.name, str(named))
    versions = client.search_model_versions(f"name='{model.name}'")
    return max(versions, key=lambda version: int(version.version), default=None)


def dataset(logged: Any) -> LoggedDataset:
    """What MLflow says of a dataset: its name, its source and its schema."""
    source = _json(logged.source)
    tables = [str(source[key]) for key in _TABLE_NAMES if source.get(key)]
    place = next((str(source[key]) for key in _PLACES if source.get(key)), None)
    specs = _json(logged.schema).get("mlflow_colspec")
    columns = None
    if isinstance(specs, list):
        columns = [
            str(spec["name"]) for spec in specs if isinstance(spec, dict) and spec.get("name")
        ]
    return LoggedDataset([*tables, logged.name], columns or None, place, bool(tables))


def _json(text: str | None) -> dict[str, Any]:
    try:
        content = json.loads(text or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _as_id(name: str) -> str:
    return _NO_ID.sub("_", name.strip()) or "unnamed"
