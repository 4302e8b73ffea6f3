"""A warehouse for benchmarks of projects that have none here: every relation exists, and has two columns.

Every query answers with no rows.

dbt imports every top-level module named ``dbt_*`` it finds, so that a folder in PYTHONPATH is all it
takes: in each process of dbt, and in dbt-ripple's, which calls dbt. It connects to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any


def _nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _no_relation(*_: Any, **__: Any) -> None:
    return None


def _view(self: Any, database: str, schema: str, identifier: str) -> Any:
    """There is every relation that is asked for, and none is a table: no model is incremental yet."""
    return self.Relation.create(database, schema, identifier, type="view")


def _columns(self: Any, *_: Any, **__: Any) -> list[Any]:
    # Some: a macro that lists a relation's columns writes SQL that cannot be parsed where it has none.
    return [self.Column.create(name, "string") for name in ("id", "name")]


def _open(cls: Any, connection: Any) -> Any:
    connection.state, connection.handle = "open", object()
    return connection


def _execute(*_: Any, **__: Any) -> tuple[Any, Any]:
    from dbt.adapters.contracts.connection import AdapterResponse
    from dbt_common.clients.agate_helper import empty_table

    return AdapterResponse("OK"), empty_table()


def _stub(adapter: str, name: str) -> None:
    """Have one adapter's class and connections answer without a server."""
    try:
        impl = importlib.import_module(f"dbt.adapters.{adapter}.impl")
        connections = importlib.import_module(f"dbt.adapters.{adapter}.connections")
    except ImportError:
        return
    manager = getattr(connections, f"{name}ConnectionManager")
    manager.open = classmethod(_open)
    manager.execute = _execute
    for done in ("close", "begin", "commit", "release", "cancel_open", "rollback_if_open"):
        setattr(manager, done, _no_relation)
    the_adapter = getattr(impl, f"{name}Adapter")
    the_adapter.get_relation = _view
    the_adapter.get_columns_in_relation = _columns
    for listing in ("list_relations", "list_relations_without_caching", "list_schemas"):
        setattr(the_adapter, listing, _nothing)
    the_adapter.check_schema_exists = lambda *_, **__: False


_stub("bigquery", "BigQuery")
_stub("trino", "Trino")
_stub("snowflake", "Snowflake")
