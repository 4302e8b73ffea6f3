"""`from dbt_ripple import track`: Python code tells of its own runs.

A decorator and a context manager, for functions, coroutines, generators and asynchronous
generators. Each run sends START, and at its end COMPLETE, FAIL (with the error, which is raised
again) or ABORT (it was cancelled, interrupted, or a generator was closed before its end).

Guaranteed: what the code returns, raises and yields is as without it, and nothing here waits for a
collector (`openlineage.background`). A wrong declaration raises ValueError where it is written.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
import traceback
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, overload

from dbt_ripple.openlineage.background import BACKGROUND, log
from dbt_ripple.openlineage.declared_lineage import ColumnLineage, Dataset, Declared

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")
Datasets = Iterable[Dataset | str] | Dataset | str


class JobOf(NamedTuple):
    """What is known of a job before it runs.

    Attributes:
        file: where its code is.
    """

    namespace: str
    name: str
    description: str = ""
    file: str = ""


class TrackedRun:
    """One run, while it runs; it can be told what is only known then."""

    def __init__(self, job: JobOf, declared: Declared, parent: TrackedRun | None) -> None:
        self.run_id = str(uuid.uuid4())
        self.job = job
        self.parent = parent
        self.rows: dict[tuple[str, str], int] = {}
        self.declared = declared
        self.started_at = time.time()

    def add(
        self,
        inputs: Datasets = (),
        outputs: Datasets = (),
        columns: Iterable[ColumnLineage] = (),
    ) -> None:
        """Datasets and columns beside those that were declared. What is wrong with them is logged."""
        try:
            self.declared = self.declared.adding(inputs, outputs, columns)
        except (ValueError, TypeError) as error:
            log.warning("dbt_ripple: %s: %s", self.job.name, error)

    def wrote(self, dataset: Dataset | str, rows: int) -> None:
        """How many rows were written to an output."""
        try:
            place = Dataset.of(dataset)
            self.rows[place.namespace, place.name] = int(rows)
        except (ValueError, TypeError) as error:
            log.warning("dbt_ripple: %s: %s", self.job.name, error)

    def dataframe(self, df: D, output: Dataset | str | None = None) -> D:
        """Take inputs, and where the columns of an output come from, from a Spark DataFrame's plan.

        Nothing is run, and nothing raised: what is not known of the plan is logged, and its relations
        are inputs without columns.

        Args:
            df: what is written there.
            output: by default the only output that is declared.

        Returns:
            The DataFrame itself.
        """
        try:
            from dbt_ripple.openlineage.dataframe_lineage import declared_of

            if output is None:
                if len(self.declared.outputs) != 1:
                    raise ValueError("of which output is the DataFrame? Name it")
                output = self.declared.outputs[0]
            declared = declared_of(df, Dataset.of(output))
            self.declared = self.declared.adding(
                declared.inputs, [declared.output], declared.columns
            )
            if declared.gap:
                log.warning(
                    "dbt_ripple: %s: the columns of a DataFrame are not known: %s",
                    self.job.name,
                    declared.gap,
                )
        except Exception as error:  # a job does not fail because its lineage cannot be told
            log.warning("dbt_ripple: %s: %s", self.job.name, error)
        return df

    def begin(self) -> None:
        """Send START."""
        self._put("START", self.started_at)

    def end(self, error: BaseException | None) -> None:
        """Send how it ended."""
        now = time.time()
        if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            self._put("COMPLETE", now)
            return
        message = "".join(traceback.format_exception_only(error)).strip()
        trace = "".join(traceback.format_exception(error))
        self._put("ABORT" if _is_aborted(error) else "FAIL", now, message, trace)

    def _put(self, state: str, at: float, message: str = "", trace: str = "") -> None:
        if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
            return
        run_id, job, declared, rows = self.run_id, self.job, self.declared, dict(self.rows)
        parent = (self.parent.run_id, self.parent.job) if self.parent else None
        root = self.parent
        while root is not None and root.parent is not None:
            root = root.parent
        top = (root.run_id, root.job) if root else None

        def make() -> Any:
            from dbt_ripple.openlineage.tracked_events import tracked_event

            return tracked_event(
                state=state,
                at=at,
                run_id=run_id,
                job=job,
                declared=declared,
                rows=rows,
                parent=parent,
                root=top,
                message=message,
                trace=trace,
            )

        BACKGROUND.put(make)


_current: ContextVar[TrackedRun | None] = ContextVar("dbt_ripple_track", default=None)
_Entered = tuple[tuple["Tracked", TrackedRun, "TrackedRun | None"], ...]
_entered: ContextVar[_Entered] = ContextVar("dbt_ripple_entered", default=())


class Tracked:
    """What `track(...)` returns: a decorator, and a context manager (``with``, ``async with``)."""

    def __init__(self, job: str | None, namespace: str | None, declared: Declared) -> None:
        self._job = job
        self._namespace = namespace
        self._declared = declared
        self._open: list[TrackedRun] = []

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call is a run."""
        if isinstance(function, (staticmethod, classmethod)):
            return type(function)(self(function.__func__))
        if not callable(function) or inspect.isclass(function):
            raise TypeError(f"track decorates functions, not {function!r}")
        return _decorated(self, function)  # type: ignore[no-any-return]

    def __enter__(self) -> TrackedRun:
        run = self.new_run()
        _entered.set((*_entered.get(), (self, run, _current.get())))
        self._open.append(run)
        _current.set(run)
        run.begin()
        return run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # One object may be entered several times, by several threads and tasks.
        entered = _entered.get()
        own_entry = next((e for e in reversed(entered) if e[0] is self), None)
        if own_entry is not None:
            _entered.set(tuple(e for e in entered if e is not own_entry))
            _current.set(own_entry[2])
            run = own_entry[1]
            self._open.remove(run)
        else:  # it was entered in another context
            run = self._open.pop()
        run.end(error)

    async def __aenter__(self) -> TrackedRun:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def new_run(self, of: JobOf | None = None) -> TrackedRun:
        """A run of a function, or of a block, that has not begun."""
        namespace = self._namespace or os.environ.get("OPENLINEAGE_NAMESPACE", "").strip()
        job = JobOf(namespace or "default", self._job or "__main__")
        if of is not None:
            job = of._replace(namespace=job.namespace, name=self._job or of.name)
        return TrackedRun(job, self._declared, _current.get())


def _described(function: Callable[..., Any]) -> JobOf:
    """What a function says of itself."""
    plain = _plain(inspect.unwrap(function))
    module = getattr(plain, "__module__", None) or "__main__"
    name = f"{module}.{getattr(plain, '__qualname__', type(plain).__qualname__)}"
    file = getattr(getattr(plain, "__code__", None), "co_filename", "")
    return JobOf("", name, inspect.getdoc(plain) or "", file)


class Track:
    """`track`: used as ``@track``, ``@track(...)`` and ``with track(...) as run``.

    Example:
        >>> @track(inputs=["s3://lake/raw/orders"], outputs=["s3://lake/silver/orders"])
        ... def clean_orders(): ...
    """

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(
        self,
        /,
        *,
        inputs: Datasets = ...,
        outputs: Datasets = ...,
        columns: Iterable[ColumnLineage] = ...,
        job: str | None = ...,
        namespace: str | None = ...,
    ) -> Tracked: ...
    def __call__(
        self,
        function: Callable[P, R] | None = None,
        /,
        *,
        inputs: Datasets = (),
        outputs: Datasets = (),
        columns: Iterable[ColumnLineage] = (),
        job: str | None = None,
        namespace: str | None = None,
    ) -> Callable[P, R] | Tracked:
        """Track a function, or a block.

        Args:
            function: where it is used without arguments.
            inputs: what it reads: URLs, absolute paths, names in the job's namespace, or `Dataset`.
            outputs: what it writes.
            columns: where columns of the outputs come from.
            job: its name; by default the function's module and qualified name.
            namespace: of the job; by default OPENLINEAGE_NAMESPACE, or ``default``.

        Raises:
            ValueError: a dataset or a column is not declared as it has to be.
        """
        tracked = Tracked(job, namespace, Declared.of(inputs, outputs, columns))
        return tracked if function is None else tracked(function)

    def dataframe(self, df: D, output: Dataset | str | None = None) -> D:
        """`TrackedRun.dataframe` of the run in which this is called; outside of one it does nothing.

        Example:
            >>> @track(outputs=["s3://lake/silver/orders"])
            ... def clean_orders(spark):
            ...     df = spark.table("raw.orders").dropDuplicates(["order_id"])
            ...     track.dataframe(df).write.parquet("s3://lake/silver/orders")
        """
        run = _current.get()
        if run is None:
            log.warning("dbt_ripple: track.dataframe is called outside of a tracked run")
            return df
        return run.dataframe(df, output)

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until all events are sent or dropped, for at most some seconds; whether they are."""
        return BACKGROUND.flush(seconds)

    @property
    def sent(self) -> int:
        """How many events this process has sent."""
        return BACKGROUND.sent

    @property
    def dropped(self) -> int:
        """How many it has not sent, and will not."""
        return BACKGROUND.dropped


track: Final = Track()


def _is_aborted(error: BaseException) -> bool:
    """Whether somebody ended a run from outside: it was cancelled, interrupted, or closed."""
    asyncio = sys.modules.get("asyncio")  # without it nothing was cancelled
    cancelled = asyncio is not None and isinstance(error, asyncio.CancelledError)
    return cancelled or isinstance(error, (KeyboardInterrupt, GeneratorExit))


@contextmanager
def _running(run: TrackedRun) -> Iterator[None]:
    """While code of a run executes: what is tracked in it has the run as its parent."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def _plain(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _decorated(tracked: Tracked, function: Callable[..., Any]) -> Any:
    """A function of the same kind, each call of which is a run."""
    plain, job = _plain(function), _described(function)
    is_partial = isinstance(function, functools.partial)
    wraps = functools.wraps(plain, updated=() if is_partial else functools.WRAPPER_UPDATES)

    if inspect.isasyncgenfunction(plain):

        @wraps
        async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            inner = function(*args, **kwargs)
            run = tracked.new_run(job)
            run.begin()
            value: Any = None
            thrown: BaseException | None = None
            try:
                while True:
                    with _running(run):
                        try:
                            step = inner.asend(value) if thrown is None else inner.athrow(thrown)
                            item = await step
                        except StopAsyncIteration:
                            break
                    thrown = None
                    try:
                        value = yield item
                    except GeneratorExit:
                        with _running(run):
                            await inner.aclose()
                        raise
                    except BaseException as error:
                        thrown = error
            except BaseException as error:
                run.end(error)
                raise
            run.end(None)

        return async_generator
    if inspect.isgeneratorfunction(plain):

        @wraps
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            inner = function(*args, **kwargs)
            return (yield from _steps(tracked.new_run(job), inner))

        return generator
    if inspect.iscoroutinefunction(plain):

        @wraps
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            inner = function(*args, **kwargs)
            run = tracked.new_run(job)
            run.begin()
            return await _awaited(run, inner)

        return coroutine

    @wraps
    def call(*args: Any, **kwargs: Any) -> Any:
        run = tracked.new_run(job)
        run.begin()
        try:
            with _running(run):
                result = function(*args, **kwargs)
        except BaseException as error:
            run.end(error)
            raise
        if inspect.iscoroutine(result):  # another decorator made it: nothing has run yet
            return _awaited(run, result)
        run.end(None)
        return result

    return call


async def _awaited(run: TrackedRun, inner: Coroutine[Any, Any, R]) -> R:
    try:
        with _running(run):
            result = await inner
    except BaseException as error:
        run.end(error)
        raise
    run.end(None)
    return result


def _steps(run: TrackedRun, inner: Generator[Any, Any, R]) -> Generator[Any, Any, R]:
    """A generator, its run current only while its own code executes."""
    run.begin()
    value: Any = None
    thrown: BaseException | None = None
    try:
        while True:
            with _running(run):
                try:
                    item = inner.send(value) if thrown is None else inner.throw(thrown)
                except StopIteration as stop:
                    result: R = stop.value
                    break
            thrown = None
            try:
                value = yield item
            except GeneratorExit:
                with _running(run):
                    inner.close()
                raise
            except BaseException as error:
                thrown = error
    except BaseException as error:
        run.end(error)
        raise
    run.end(None)
    return result
