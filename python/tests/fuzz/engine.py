"""Executes queries over the small tables, with bounds on time, memory and rows."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import duckdb
from generators.catalogue import Catalogue, duckdb_catalogue
from tables import make_every, make_tables

MOST_ROWS: Final = 400
SECONDS: Final = 2.0
ELSE: Final = ("", "order 1", "order 2", "unoptimised")
"""How a result is tried again to see whether the query alone decides it: rows in other places of the
tables, and no optimizer."""


@dataclass
class Result:
    """What a query gave: names as a table made of it has them, and rows in order."""

    names: list[str]
    rows: list[tuple[str, ...]]

    def bag(self) -> Counter[tuple[str, ...]]:
        return Counter(self.rows)


class DuckDB:
    """One process's DuckDB; made anew where a query has brought it down."""

    dialect: Final = "duckdb"

    def __init__(self) -> None:
        self.connection: Any = None
        self.otherwise: dict[str, Any] = {}
        self.watched: tuple[Any, float] | None = None
        self.connect()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """Stop the query that runs for too long."""
        while True:
            time.sleep(0.2)
            now = self.watched
            if now is not None and time.monotonic() > now[1]:
                now[0].interrupt()

    def catalogue(self, one_in: int = 1) -> Catalogue:
        return duckdb_catalogue(self.connection, one_in)

    def connect(self) -> None:
        self.connection = self.opened(0)
        make_every(self.connection)

    @staticmethod
    def opened(order: int) -> Any:
        settings = {"threads": 1, "memory_limit": "400MB", "preserve_insertion_order": True}
        connection = duckdb.connect(":memory:", config=settings)
        connection.execute("set timezone = 'UTC'")
        connection.execute("set enable_progress_bar = false")
        make_tables(connection, order)
        return connection

    def run(self, sql: str, how: str = "") -> Result | str:
        """What a query gives, or the error."""
        connection = self.connection
        if how:
            if how not in self.otherwise:
                self.otherwise[how] = self.opened(int(how[-1]) if how.startswith("order") else 0)
                if how == "unoptimised":
                    self.otherwise[how].execute("pragma disable_optimizer")
            connection = self.otherwise[how]
        self.watched = (connection, time.monotonic() + SECONDS)
        try:
            cursor = connection.execute(sql)
            if cursor.description is None:
                return "no result"
            rows = cursor.fetchmany(MOST_ROWS + 1)
            names = [d[0] for d in cursor.description]
            lowered = [n.lower() for n in names]
            if len(set(lowered)) < len(names):
                stored = connection.execute(f"select * from ({sql}\n) limit 0").description
                names = [d[0] for d in stored]
        except Exception as error:
            text = str(error)
            if "invalidated" in text or "INTERNAL" in text or "FATAL" in text:
                self.otherwise = {}
                self.connect()
                return "crash: " + text.splitlines()[0][:100]
            return text.splitlines()[0][:120]
        finally:
            self.watched = None
        if len(rows) > MOST_ROWS:
            return "too many rows"
        return Result(names, [tuple(map(repr, row)) for row in rows])

    def determined(self, sql: str, result: Result | str) -> bool:
        """Whether a query gives the same wherever its tables' rows lie and however it is planned, or always fails."""
        for how in ELSE:
            other = self.run(sql, how)
            if isinstance(other, str) or isinstance(result, str):
                if not (isinstance(other, str) and isinstance(result, str)):
                    return False
            elif other.bag() != result.bag():
                return False
        return True
