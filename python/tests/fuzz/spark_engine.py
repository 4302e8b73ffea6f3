"""Executes queries on an embedded Spark, as `engine.DuckDB` does on DuckDB."""

from __future__ import annotations

import logging
import re
import threading
import time
import zlib
from typing import Any, Final

from engine import MOST_ROWS, Result
from generators.catalogue import PLACE, Call, Catalogue, class_of_spark
from generators.schemas import SPARK_TABLES
from tables import SPARK_ROWS

SECONDS: Final = 20.0
SETTINGS: Final = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.cartesianProduct.limit": "100",
    "spark.sql.cteRecursionLevelLimit": "30",
    "spark.sql.cteRecursionRowLimit": "1000",
    "spark.log.level": "OFF",
}
LEFT_OUT: Final = frozenset(
    """
    current_catalog current_database current_date current_schema current_time current_timestamp current_timezone
    current_user input_file_block_length input_file_block_start input_file_name localtimestamp
    monotonically_increasing_id now rand randn random randstr raise_error reflect java_method session_user
    shuffle spark_partition_id unix_timestamp user uuid version try_reflect assert_true sleep curdate
    try_aes_decrypt aes_encrypt window window_time session_window approx_percentile percentile_approx
    approx_count_distinct approx_top_k uniform python_worker_logs try_variant_get kll_sketch_agg_bigint
    """.split()
)
"""What is the time's, the session's or chance's; approximations."""
COLUMN: Final = {
    "int": "k", "num": "f", "str": "s", "bool": "p", "date": "d", "ts": "ts", "list": "l", "slist": "z",
    "struct": "st", "map": "m",
}  # fmt: skip
SHAPES: Final = [("int",), ("str",), ("num",), ("int", "int"), ("bool",), ("list",)]
"""Arguments to try where a function's own example could not be read."""
LITERAL: Final = re.compile(
    r"(-?\d+)|(-?\d+\.\d+)|('[^']*')|(DATE ?'[^']*')|(TIMESTAMP ?'[^']*')|(true|false)", re.I
)
OF_LITERAL: Final = (None, "int", "num", "str", "date", "ts", "bool")
MORE: Final = (
    ("aggregate", "listagg({str}, ',') within group (order by {int})"),
    ("aggregate", "percentile_cont(0.5) within group (order by {int})"),
    ("aggregate", "percentile_disc(0.25) within group (order by {int} desc)"),
    ("aggregate", "mode() within group (order by {int})"),
    ("aggregate", "percentile({int}, 0.5, 2)"),
    ("aggregate", "percentile({int}, 0.5, {int})"),
    ("aggregate", "first({int}, true)"),
    ("aggregate", "any_value({int} ignore nulls)"),
)


class Spark:
    """One Spark session over the small tables."""

    dialect: Final = "spark"

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        builder = SparkSession.builder.appName("fuzz")
        for key, value in SETTINGS.items():
            builder = builder.config(key, value)
        self.session: Any = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")
        self.watched: float | None = None
        self.order = 0
        self.make_tables(0)
        every = (
            "select a.k, a.f, a.s, a.p, a.d, a.ts, c.l, c.z, c.st, c.m from a join c on a.k = c.k"
        )
        self.session.sql(every).createOrReplaceTempView("every")
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """Stop the query that runs for too long."""
        while True:
            time.sleep(0.5)
            if self.watched is not None and time.monotonic() > self.watched:
                self.session.sparkContext.cancelAllJobs()

    def make_tables(self, order: int) -> None:
        """Make the tables; another `order` puts the same rows in other places."""
        for name, columns in SPARK_TABLES.items():
            rows = SPARK_ROWS[name]
            rows = [rows, rows[::-1], rows[1::2] + rows[::2]][order]
            casts = ", ".join(f"cast({c} as {t}) as {c}" for c, t in columns.items())
            listed = ", ".join(columns)
            made = f"select {casts} from values {', '.join(rows)} as t ({listed})"
            self.session.sql(made).createOrReplaceTempView(name)
        self.order = order

    def run(self, sql: str, how: str = "") -> Result | str:
        """What a query gives, or the error."""
        order = int(how[-1]) if how else 0
        if order != self.order:
            self.make_tables(order)
        self.watched = time.monotonic() + SECONDS
        try:
            frame = self.session.sql(sql)
            names = list(frame.columns)
            if len({n.lower() for n in names}) < len(names):
                return "a table of it cannot be made: a name stands twice"
            rows = frame.take(MOST_ROWS + 1)
        except Exception as error:
            return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        finally:
            self.watched = None
        if len(rows) > MOST_ROWS:
            return "too many rows"
        return Result(names, [tuple(map(repr, row)) for row in rows])

    def determined(self, sql: str, result: Result) -> bool:
        """Whether a query gives the same wherever its tables' rows lie."""
        for how in ("", "order 1", "order 2"):
            other = self.run(sql, how)
            if isinstance(other, str) or other.bag() != result.bag():
                return False
        return True

    def catalogue(self, one_in: int = 1) -> Catalogue:
        """The calls in the examples of Spark's own registry, with places for their literals."""
        catalogue = Catalogue()
        state = self.session._jsparkSession.sessionState()
        identifiers = state.functionRegistry().listFunction()
        names = sorted({identifiers.apply(i).funcName() for i in range(identifiers.size())})
        identifier = self.session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
        for name in names:
            chosen = name in ("max", "row_number") or not zlib.crc32(name.encode()) % one_in
            if not name.isidentifier() or name in LEFT_OUT or not chosen:
                continue
            info = state.catalog().lookupFunctionInfo(identifier(name))
            group = str(info.getGroup() or "")
            kind = {"agg_funcs": "aggregate", "window_funcs": "window"}.get(group, "scalar")
            if "generator" in group:
                continue
            shapes = examples(name, str(info.getExamples() or ""))
            calls = [c for shape in shapes if (c := self.attempt(name, kind, shape)) is not None]
            for shape in () if calls else SHAPES:
                call = self.attempt(name, kind, shape)
                if call is not None:
                    calls = [call]
                    break
            for call in calls:
                catalogue.add(call)
            if not calls:
                catalogue.unreached.append(f"{name} ({kind})")
        for kind, text in MORE:
            call = self.attempt(text, kind, (f"={text}",))
            if call is not None:
                catalogue.add(call)
        return catalogue

    def attempt(self, name: str, kind: str, shape: tuple[str, ...]) -> Call | None:
        """A call with arguments of these classes, if the analyser accepts it."""
        whole = "(" in name
        texts = [
            PLACE.sub(lambda m: COLUMN.get(m[1], "q"), a[1:]) if a.startswith("=") else COLUMN[a]
            for a in shape
        ]
        text = texts[0] if whole else f"{name}({', '.join(texts)})"
        over = " over (order by k)" if kind == "window" else ""
        try:
            frame = self.session.sql(f"select {text}{over} as v from every")
            type_ = frame.schema[0].dataType.simpleString()
        except Exception:
            return None
        return Call(name.split("(")[0], kind, shape, class_of_spark(type_), whole)


def examples(name: str, text: str) -> list[tuple[str, ...]]:
    """The arguments of a function's examples: a class where a literal or a column stands."""
    shapes: list[tuple[str, ...]] = []
    for start in re.finditer(rf"> SELECT {re.escape(name)}\(", text):
        inside, depth, quoted = [""], 1, False
        rest = text[start.end() :]
        for at, char in enumerate(rest):
            quoted ^= char == "'"
            if not quoted:
                depth += (char in "([") - (char in ")]")
                if not depth:
                    rest = rest[at + 1 :]
                    break
            if char == "," and depth == 1 and not quoted:
                inside.append("")
            else:
                inside[-1] += char
        values = re.match(r"\s*FROM VALUES \(?([^)]*)\)", rest)
        columns = values[1].split(",") if values else []
        shape = []
        for at, piece in enumerate(p.strip() for p in inside if p.strip()):
            if re.fullmatch(r"col\d?|[a-z]", piece) and columns:
                piece = columns[min(at, len(columns) - 1)].strip()
            match = LITERAL.fullmatch(piece)
            if match is not None:
                kind = OF_LITERAL[match.lastindex or 1]
                of_words = kind == "str" and at > 0
                shape.append(f"={piece}" if of_words else str(kind))
            elif re.fullmatch(r"array\([-\d, nul]+\)", piece):
                shape.append("list")
            elif re.fullmatch(r"array\('[^()]*'\)", piece):
                shape.append("slist")
            elif piece.startswith("map("):
                shape.append("map")
            else:
                shape.append(f"={piece}")
        if tuple(shape) not in shapes and len(shapes) < 2 and (shape or name in NO_ARGUMENTS):
            shapes.append(tuple(shape))
    return shapes


NO_ARGUMENTS: Final = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "pi", "e"}
)
