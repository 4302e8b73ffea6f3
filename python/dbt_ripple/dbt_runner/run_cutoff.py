"""`--run --cutoff`: builds a selection level by level, and stops where a relation comes out equal.

After each level the engine hashes each relation that was built, for each set of columns that
something downstream reads. It does the same for what base's SQL makes of the same inputs: a table
in a schema of its own, which is dropped at the end. `selection.cutoff` decides; this module runs
dbt and queries the engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import Node
from dbt_ripple.changes import Comparison
from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions, temporary_folder
from dbt_ripple.dbt_runner.run_selection import (
    deferred_to,
    functions_of,
    read_by,
    run_left_out,
    run_nodes,
    write_state,
)
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import count, warn
from dbt_ripple.selection.cutoff import Cutoff
from dbt_ripple.selection.cutoff_reads import (
    THIS,
    Answer,
    Question,
    Types,
    Unequal,
    equal_columns,
    unequal_rows,
)
from dbt_ripple.selection.relation_hashes import (
    HashedColumn,
    NotHashed,
    engines,
    hashes_of,
    hashes_sql,
    row_sql,
)
from dbt_ripple.selection.result import PASSED, Selection, SelectionRun
from dbt_ripple.selection.select import tests_of_critical

BESIDE: Final = "__ripple_base"
"""Ends the name of the schema in which base's relations are built beside head's."""


class Warehouse:
    """What dbt's adapter is connected to: asked for columns and hashes, and given tables to make.

    Args:
        manifest: dbt's own, as it parsed head; the adapter runs its macros.
    """

    def __init__(self, manifest: Any) -> None:
        self.manifest = manifest
        self.adapter_type = str(manifest.metadata.adapter_type)
        self.schema: Any = None
        self.columns_of: dict[str, dict[str, str] | None] = {}

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        """The adapter, connected."""
        from dbt.adapters.factory import get_adapter_by_type

        adapter: Any = get_adapter_by_type(self.adapter_type)
        if adapter.get_macro_resolver() is None:
            adapter.set_macro_resolver(self.manifest)
        from dbt.context.providers import generate_runtime_macro_context

        adapter.set_macro_context_generator(generate_runtime_macro_context)
        with adapter.connection_named("dbt_ripple"):
            yield adapter
            self.commit(adapter)

    @staticmethod
    def commit(adapter: Any) -> None:
        """End what the adapter's own macros have begun, or it would be undone with the connection."""
        if adapter.connections.get_thread_connection().transaction_open:
            adapter.commit_if_has_connection()

    def relation(self, adapter: Any, node: Node) -> Any:
        """A node's relation."""
        return adapter.Relation.create(
            database=node.database,
            schema=node.schema,
            identifier=node.identifier or node.alias or node.name,
            quote_policy=adapter.config.quoting,
        )

    def beside(self, adapter: Any, node: Node) -> Any:
        """Where base's relation of a node is made."""
        credentials = adapter.config.credentials
        database = None if self.adapter_type == "spark" else credentials.database
        relation = adapter.Relation.create(
            database=database,
            schema=f"{credentials.schema}{BESIDE}",
            identifier=node.unique_id.replace(".", "__"),
            quote_policy=adapter.config.quoting,
        )
        if self.schema is None:
            self.schema = relation.without_identifier()
            adapter.create_schema(self.schema)
        return relation

    def is_there(self, adapter: Any, node: Node) -> bool:
        """Whether a node's relation is there already."""
        relation = self.relation(adapter, node)
        existing = adapter.get_relation(relation.database, relation.schema, relation.identifier)
        return existing is not None

    def make(self, adapter: Any, relation: Any, node: Node, sql: str) -> None:
        """Make a table of a query."""
        using = ""
        if self.adapter_type == "spark":
            using = f" using {node.config.get('file_format') or 'parquet'}"
        sql = sql.strip().rstrip(";")
        adapter.execute(f"drop table if exists {relation.render()}", auto_begin=False)
        adapter.execute(f"create table {relation.render()}{using} as\n{sql}", auto_begin=False)

    def columns(self, adapter: Any, relation: Any) -> dict[str, str] | None:
        """The columns of a relation and their types, in order; None where it cannot be asked."""
        name = relation.render()
        if name not in self.columns_of:
            try:
                columns = adapter.get_columns_in_relation(relation)
                self.columns_of[name] = {c.name: _type_of(c) for c in columns} or None
            except Exception:
                self.columns_of[name] = None
        return self.columns_of[name]

    def hashes(
        self, adapter: Any, relation: Any, rows: Sequence[str]
    ) -> dict[str, tuple[Any, ...]]:
        """The hashes of a relation's rows by the texts of `row_sql`, all by one scan."""
        sql = hashes_sql(self.adapter_type, relation.render(), rows)
        _, table = adapter.execute(sql, auto_begin=False, fetch=True)
        return hashes_of(self.adapter_type, rows, list(map(str, tuple(table.rows[0]))))

    def clean(self) -> None:
        """Drop what was made, and let go of the connection."""
        with self.connected() as adapter:
            if self.schema is not None:
                adapter.drop_schema(self.schema)
                self.schema = None
        adapter.cleanup_connections()


def _type_of(column: Any) -> str:
    """A column's type as the engine calls it, with what dbt keeps beside."""
    type_name = str(column.dtype)
    if column.numeric_precision is not None and "(" not in type_name:
        type_name += f"({column.numeric_precision},{column.numeric_scale or 0})"
    return type_name


class Comparer:
    """Answers what a `Cutoff` asks, by asking the engine.

    Args:
        cutoff: what asks.
        warehouse: what is asked.
    """

    def __init__(self, cutoff: Cutoff, warehouse: Warehouse) -> None:
        self.cutoff = cutoff
        self.warehouse = warehouse
        self.base_relations: dict[str, Any] = {}
        self.failed: dict[str, str] = {}

    def types(self, unique_id: str) -> Types | None:
        """The columns of a relation as head reads it now."""
        cutoff = self.cutoff
        node = cutoff.head.nodes.get(unique_id)
        if unique_id not in cutoff.decided.built or unique_id not in cutoff.done:
            node = cutoff.base.nodes.get(unique_id) or node
        if node is None:
            return None
        with self.warehouse.connected() as adapter:
            return self.warehouse.columns(adapter, self.warehouse.relation(adapter, node))

    def note_grown(self, models: list[str]) -> None:
        """Note the incremental models that are there before they are built."""
        nodes = [self.cutoff.head.nodes[u] for u in models]
        asked = [node for node in nodes if node.materialized == "incremental"]
        if asked:
            with self.warehouse.connected() as adapter:
                there = {n.unique_id for n in asked if self.warehouse.is_there(adapter, n)}
            self.cutoff.grown |= there

    def answers(self, questions: list[Question]) -> dict[str, Answer]:
        """Compare each relation with base's, over each set of columns asked for."""
        asked: dict[str, list[Question]] = {}
        for question in questions:
            asked.setdefault(question.relation, []).append(question)
        with self.warehouse.connected() as adapter:
            return {u: self._answer(adapter, u, sets) for u, sets in asked.items()}

    def _answer(self, adapter: Any, unique_id: str, sets: list[Question]) -> Answer:
        warehouse = self.warehouse
        now = warehouse.relation(adapter, self.cutoff.head.nodes[unique_id])
        head = warehouse.columns(adapter, now)
        then = self._base(adapter, unique_id)
        if head is None:
            unknown = Unequal("its columns cannot be asked for", seen=False)
            return Answer(None, {}, dict.fromkeys(sets, unknown))
        base = None if then is None else warehouse.columns(adapter, then)
        if base is None:
            why = self.failed.get(unique_id, "base's relation is not there")
            return Answer(None, head, dict.fromkeys(sets, Unequal(why, seen=False)))
        unequal: dict[Question, Unequal | None] = {}
        texts: dict[Question, tuple[str, str]] = {}
        for question in sets:
            others = equal_columns(base, head, question.columns)
            try:
                texts[question] = (self._text(base, question), self._text(head, question))
            except NotHashed as error:
                unequal[question] = Unequal(str(error), seen=False)
            if others is not None:
                texts.pop(question, None)
                unequal[question] = Unequal(others)
        try:
            one, other = (
                warehouse.hashes(adapter, relation, [t[side] for t in texts.values()])
                if texts
                else {}
                for side, relation in enumerate((then, now))
            )
        except _errors() as error:
            failed = Unequal(f"its rows could not be hashed ({_short(error)})", seen=False)
            return Answer(base, head, {**unequal, **dict.fromkeys(texts, failed)})
        for question, (before, after) in texts.items():
            unequal[question] = unequal_rows(one[before], other[after], in_order=question.in_order)
        return Answer(base, head, unequal)

    def _text(self, types: Types, question: Question) -> str:
        """A row of a relation as text, over the columns that are asked for."""
        columns = question.columns
        listed = [
            HashedColumn(name, type_)
            for name, type_ in sorted(types.items())
            if columns is None or name.lower() in columns
        ]
        return row_sql(self.warehouse.adapter_type, listed, in_order=question.in_order)

    def _base(self, adapter: Any, unique_id: str) -> Any:
        """Base's relation, made beside head's where it is not yet; None where that fails."""
        if unique_id in self.base_relations or unique_id in self.failed:
            return self.base_relations.get(unique_id)
        cutoff = self.cutoff
        node = cutoff.base.nodes[unique_id]
        if node.resource_type == "seed" or cutoff.as_it_is:
            self.base_relations[unique_id] = self.warehouse.relation(adapter, node)
            return self.base_relations[unique_id]
        names = {}
        for parent in cutoff.read.base_parents(unique_id):
            if parent in cutoff.decided.built:
                relation_of_parent = self._base(adapter, parent)
                if relation_of_parent is None:
                    name = cutoff.base.nodes[parent].display_name
                    self.failed[unique_id] = f"{name} of base could not be built"
                    return None
                names[parent] = relation_of_parent.render()
        relation = self.warehouse.beside(adapter, node)
        try:
            self.warehouse.make(adapter, relation, node, cutoff.read.base_text(unique_id, names))
            for hook in cutoff.read.own_hooks(0, unique_id) or ():
                adapter.execute(hook.replace(THIS, relation.render()), auto_begin=False)
        except _errors() as error:
            self.failed[unique_id] = f"base's SQL could not be built ({_short(error)})"
            return None
        self.warehouse.commit(adapter)
        self.base_relations[unique_id] = relation
        return relation


def _errors() -> tuple[type[BaseException], ...]:
    from dbt_common.exceptions import DbtBaseException

    return (DbtBaseException,)


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def check_adapter(adapter_type: str | None) -> None:
    """Refuse an adapter whose relations cannot be hashed.

    Raises:
        RippleError: it is such a one.
    """
    if adapter_type not in engines():
        raise RippleError(
            f"relations of adapter {adapter_type} cannot be hashed, so that nothing would be cut off",
            "--cutoff",
            f"leave it out; it knows {', '.join(engines())}",
        )


def cutoff_of(
    comparison: Comparison,
    selection: Selection,
    critical: str | None,
    *,
    as_it_is: bool = False,
    anew: bool = False,
) -> Cutoff:
    """What decides of a selection, ready to outlive the artifacts it was made of.

    Args:
        comparison: of base and head.
        selection: what can differ.
        critical: the tier of which all tests run, whatever is seen.
        as_it_is: whether base's relations are compared with as they are.
        anew: whether base is compiled as if nothing were there; the results of its build may say so,
            too.

    Raises:
        RippleError: the adapter's relations cannot be hashed.
    """
    base, head = comparison.base, comparison.head
    check_adapter(head.metadata.adapter_type)
    loaded = {r.unique_id for r in base.run_results if r.status in PASSED}
    kept = {
        node.unique_id
        for node in base.of_type("seed")
        if node.unique_id in loaded
        and (now := head.nodes.get(node.unique_id)) is not None
        and now.relation_name != node.relation_name
    }
    always = dict(tests_of_critical(comparison, critical)) if critical is not None else {}
    cutoff = Cutoff(
        comparison,
        selection,
        lambda _: None,
        always=always,
        kept=kept,
        as_it_is=as_it_is,
        anew=anew or bool(base.run_args.get("full_refresh")),
    )
    cutoff.prepare()
    return cutoff


def run_cutoff(
    cutoff: Cutoff,
    project_dir: Path,
    target_path: Path,
    options: DbtOptions,
    *,
    state: Path | None = None,
) -> SelectionRun:
    """Build and test a selection level by level, as far as something is seen to differ.

    Args:
        cutoff: decides; it is told what the engine says.
        project_dir: head.
        target_path: where dbt's artifacts go; run_results.json has the results of all levels.
        options: how dbt is called.
        state: as in `run_selection`.

    Raises:
        RippleError: dbt could not run at all.
    """
    ran = SelectionRun()
    if not (cutoff.models or cutoff.tests or cutoff.unit_tests):
        return ran
    project_dir, target_path = project_dir.resolve(), target_path.resolve()
    dbt = Dbt(project_dir, target_path, options)
    manifest = dbt("parse").result
    warehouse = Warehouse(manifest)
    comparer = Comparer(cutoff, warehouse)
    cutoff.types = comparer.types
    results: list[msgspec.Raw] = []
    built: list[str] = []
    level = 0
    try:
        while step := cutoff.next():
            level += 1
            chosen = {*step.models, *step.tests, *step.unit_tests}
            if state is None:
                chosen |= read_by(manifest, chosen) - ran.statuses.keys()
            comparer.note_grown(step.models)
            warn(
                f"level {level}: {count(len(step.models), 'model')}, "
                f"{count(len(step.tests) + len(step.unit_tests), 'test')}"
            )
            with temporary_folder() as folder:
                if state is not None:
                    write_state(state, target_path, [*built, *functions_of(step.models)], folder)
                deferred = deferred_to(folder if state is not None else None)
                run_nodes(ran, dbt, manifest, chosen, deferred)
            results += _results(target_path)
            built += step.models
            warehouse.columns_of.clear()
            cutoff.built(
                [u for u in step.models if ran.statuses.get(u) not in PASSED],
                [u for u in (*step.models, *step.tests) if ran.statuses.get(u) == "skipped"],
            )
            cutoff.answer(comparer.answers(cutoff.questions()))
    finally:
        warehouse.clean()
    _write_results(target_path, results)
    ran.statuses |= dict.fromkeys(cutoff.decided.skipped, "skipped")
    run_left_out(
        ran=ran,
        selection=cutoff.selection,
        dbt=dbt,
        manifest=manifest,
        built=built,
        target_path=target_path,
        state=state,
    )
    return ran


def _results(target_path: Path) -> list[msgspec.Raw]:
    results: list[msgspec.Raw] = _decoded(target_path).get("results", [])
    return results


def _decoded(target_path: Path) -> Mapping[str, Any]:
    content = msgspec.json.decode(
        (target_path / "run_results.json").read_bytes(), type=dict[str, msgspec.Raw]
    )
    return {
        k: msgspec.json.decode(v, type=list[msgspec.Raw]) if k == "results" else v
        for k, v in content.items()
    }


def _write_results(target_path: Path, results: list[msgspec.Raw]) -> None:
    """Write run_results.json with the results of all levels."""
    if results:
        content = {**_decoded(target_path), "results": results}
        (target_path / "run_results.json").write_bytes(msgspec.json.encode(content))
