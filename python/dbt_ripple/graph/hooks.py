"""What hooks do to other relations than their own: what they write, make and read.

A hook's SQL is in no compiled query, and it may write to any relation: ``insert into audit.log``,
``delete from {{ ref('orders') }}``. Whoever reads such a relation reads what the hook has left. A hook
may also make what queries call (a macro or function of the database, a variable of the session).

What a hook does `graph.hook_reader` tells; here its names become relations of the project. Where it does not
tell, the hook may write to anything, unless ``ripple.yml`` says to what (`Project.hook_writes`).

Hooks that only delete rows of their model's own table are a filter of the model's query (`deletes_as_filters`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.statement_effects import ANY_NAME, UNKNOWN
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints, hooks_of
from dbt_ripple.graph.hook_reader import HookEffects, Target
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.relation_names import RelationNames
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.unnamed_reads import words_of_names
from dbt_ripple.jinja.hook_runs import THIS, Place
from dbt_ripple.jinja.reads import EVERYTHING
from dbt_ripple.jinja.text import pieces

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.project_context import ProjectContext


class Hook(NamedTuple):
    """One hook of a node, or one ``on-run-*`` hook.

    Attributes:
        owner: the unique_id of the node (of the operation).
        text: a fingerprint of its text, of the macros it calls, of their vars and of what they read
            of the properties of nodes.
        writes: the relations it may write to besides its own, by unique_id; one that dbt does not
            know by the last part of its name.
        makes: the functions, variables and other things it makes that are no relations, by name.
        reads: the relations it names, by unique_id; the owner among them where it says ``this``.
        anything: whether it may write to any relation.
        words: of its statements, lower case: what other hooks write or make may be among them.
        packages: the known packages to whose own relations it writes.
    """

    owner: str
    text: bytes
    writes: frozenset[str]
    makes: frozenset[str]
    reads: frozenset[str]
    anything: bool
    words: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()


_RUNNING: Final = (
    "run_query statement execute drop_relation truncate_relation rename_relation".split()
)
_RUNS: Final = re.compile(rf"\b(?:drop_relation\w+|{'|'.join(_RUNNING)})\b")
_WRITES: Final = re.compile(
    r"\b(?:insert|update|delete|merge|truncate\w*|copy|create|drop\w*|rename\w*|alter|replace\s+(?:into|table))\b",
    re.I,
)
"""Words without which no text runs a statement of its own, or writes by it."""
_RUNS_IT: Final = re.compile(rf"{_RUNS.pattern}|\b(?:drop|rename|truncate)_\w+")
"""The same in its tags, with what macros that run one are called."""


class Hooks:
    """The hooks of one project that do something to other relations than their own.

    Args:
        project: with its nodes.
        config_fingerprints: of the project.
        names: of the project.
        nodes: those that `nodes_that_may_write` has found in it.

    Attributes:
        all: those hooks.
        writing: the hooks that may write to each relation, by unique_id; to one that dbt does not
            know, by the last part of its name.
        making: the hooks that make something queries may call, by its name.
    """

    def __init__(
        self,
        project: Project,
        config_fingerprints: ConfigFingerprints,
        names: RelationNames,
        nodes: Iterable[Node],
    ) -> None:
        self.project = project
        self.nodes = nodes
        self.names = names
        self.macros = config_fingerprints.macros
        self.config_fingerprints = config_fingerprints
        self.reader = self.macros.hook_reader
        self.macros_that_run = macros_that_run(self.macros)
        self.all = [hook for hook in self._hooks() if hook.writes or hook.makes or hook.anything]
        self.writing: dict[str, list[Hook]] = {}
        self.making: dict[str, list[Hook]] = {}
        for hook in self.all:
            for written in hook.writes:
                self.writing.setdefault(written, []).append(hook)
            for relation in hook.makes:
                self.making.setdefault(relation, []).append(hook)
        plain = "|".join(re.escape(name) for name in self.making if name != ANY_NAME)
        self._made = re.compile(rf"\b(?:{plain})\b", re.I) if plain else None

    def of_others(self, hook: Hook) -> set[str]:
        """What other hooks write or make, and a hook names: keys of `Linker.left_in`."""
        keys = {key for key in self.writing.keys() & hook.words if key not in hook.writes}
        named = self.making.keys() if ANY_NAME in self.making else self.making.keys() & hook.words
        return keys | {f"{name}()" for name in named if name not in hook.makes}

    def doing(self, key: str) -> list[Hook]:
        """The hooks that write to a relation, or make something, whose key ends in ``()``."""
        name = key.removesuffix("()")
        return self.making.get(name, []) if key != name else self.writing.get(key, [])

    def read_by_own(self, node: Node) -> set[str]:
        """The relations that a node's hooks name which may change its own."""
        named: set[str] = set()
        for _, sql in self.config_fingerprints.own_hooks(node):
            done = self.reader.of(sql, node.package_name)
            targets = done.reads | done.writes
            named.update(u for target in targets for u in self.read(target, node.unique_id))
            if done.because is not None:
                named.update(self.project.parents.get(node.unique_id, ()))
                named |= self.names.named_by(words_of_names(" ".join(done.texts)))
        return named

    def called_in(self, sql: str) -> set[str]:
        """What hooks make and a query names."""
        functions = set(self.making.keys() & {ANY_NAME})
        if self._made is not None:
            functions.update(word.lower() for word in self._made.findall(sql))
        return functions

    def _hooks(self) -> Iterator[Hook]:
        yield from self._of_runs()
        for node in self.nodes:
            if node.resource_type == "operation":
                continue
            for _, sql in hooks_of(node):
                yield self.hook(node, sql)
            if header := node.config.get("sql_header"):
                yield self.hook(node, str(header))
            if node.resource_type in ("model", "snapshot") and self._may_run(node):
                yield self.hook(node, node.raw_code, output=False)._replace(anything=False)

    def _of_runs(self) -> Iterator[Hook]:
        """The ``on-run-*`` hooks in the order in which they run.

        What one does that is followed may be another thing behind one that may do anything.
        """
        before: dict[str, bytes] = {}
        for node in in_order(self.project.of_type("operation")):
            hook = self.hook(node, node.raw_code)
            run = when_it_runs(node.unique_id)
            if hook.anything:
                before[run] = digest(before.get(run, b""), hook.text)
            elif run in before:
                hook = hook._replace(text=digest(hook.text, before[run]))
            yield hook

    def _may_run(self, node: Node) -> bool:
        """Whether a node's Jinja may run a statement beside its query that writes."""
        if node.is_python:
            return False
        called = node.depends_on.macros
        return not self.macros_that_run.isdisjoint(called) or _may_write(node.raw_code)

    def hook(self, node: Node, sql: str, *, output: bool = True) -> Hook:
        """What one hook of a node does; without ``output`` what the node's Jinja runs."""
        done = self.reader.of(sql, node.package_name, output=output)
        owner = node.unique_id
        writes: set[str] = set()
        anything = done.anything
        for target in done.writes:
            relations = self.target(target, owner)
            writes |= relations
            anything = anything or not relations
        for package in done.packages:
            writes |= self._relations_of(package)
        return Hook(
            owner=owner,
            text=self._text(node, sql, done),
            writes=frozenset(writes - {owner}),
            makes=done.makes,
            reads=frozenset(u for t in done.reads for u in self.read(t, owner)),
            anything=anything or (done.of_session and node.resource_type == "operation"),
            words=done.words,
            packages=done.packages,
        )

    def _text(self, node: Node, sql: str, done: HookEffects) -> bytes:
        """A fingerprint of what decides what a hook leaves, besides the relations that it reads."""
        text = self.config_fingerprints.text_of_hook(sql, node).encode("utf-8", "surrogatepass")
        if done.packages:  # what they leave there may tell of all that there is
            text = digest(text, self._everything)
        if done.packages and len(done.texts) == 1:  # it calls nothing else
            return text
        references = self.config_fingerprints.references_in(done, node)
        return digest(
            text,
            self.config_fingerprints.code_of_hook(sql, done),
            self.macros.variables(sql).encode(),
            self.config_fingerprints.read_by(sql, node, done),
            *([repr(references).encode()] if references else []),
        )

    @cached_property
    def _everything(self) -> bytes:
        """A fingerprint of all nodes and macros as they are written."""
        nodes, macros = self.project.nodes, self.macros.macros
        texts = [
            *(nodes[u].raw_code for u in sorted(nodes)),
            *(macros[u].macro_sql for u in sorted(macros)),
        ]
        return digest(
            self.config_fingerprints.of_all_nodes(EVERYTHING, None),
            *(text.encode("utf-8", "surrogatepass") for text in texts),
        )

    def _relations_of(self, package: str) -> set[str]:
        """The relations of a package, and those of their names, by which it may look for them."""
        of_project = [n for n in self.project.nodes.values() if n.resource_type in RELATIONS]
        names = {node.name for node in of_project if node.package_name == package}
        return {
            self.names.canonical.get(node.unique_id, node.unique_id)
            for node in of_project
            if node.name in names and not node.is_ephemeral
        }

    # -- names --------------------------------------------------------------------------------------

    def target(self, target: Target, owner: str) -> set[str]:
        """The relations that a target may mean; none where that may be any."""
        if target.place is not None:
            relations = self._at(target.place, owner)
            if target.name:  # in another schema it is another one of that name
                nodes = [self.project.nodes[u] for u in relations if u in self.project.nodes]
                for name in {n.identifier or n.alias or n.name for n in nodes}:
                    relations |= self._named_so(name.lower())
            return relations
        relations = self.read(target, owner)
        certain = bool(relations) and "." in target.name and UNKNOWN not in target.name
        return relations if certain else {*relations, target.last}

    def read(self, target: Target, owner: str) -> set[str]:
        """The relations of the project that a name may mean."""
        if target.place is not None:
            return {u for u in self._at(target.place, owner) if u in self.project.nodes}
        if "." not in target.name or UNKNOWN in target.name:
            return self._named_so(target.last)
        unique_id = self.names.node_named(target.name)
        return {unique_id} if unique_id is not None else set()

    def _at(self, place: Place, owner: str) -> set[str]:
        """The relations that Jinja names."""
        if place == THIS:
            return {owner}
        kind, *texts = place
        if kind == "named":
            return {*self._named_so(texts[0].lower()), texts[0].lower()}
        return {
            self.names.canonical.get(u, u)
            for u in self.names.by_dbt_name.get(texts[-1], ())
            if u.startswith("source.") == (kind == "source")
            and (len(texts) < 2 or texts[0] in u.split("."))
        }

    def _named_so(self, last: str) -> set[str]:
        """The relations of this name in any schema."""
        return set(self.names.by_identifier.get(last, ()))


def when_it_runs(owner: str) -> str:
    """Of an ``on-run-*`` hook, when it runs, without its place among the others; else the node."""
    return re.sub(r"-\d+$", "", owner) if owner.startswith("operation.") else owner


def in_order(hooks: Iterable[Node]) -> list[Node]:
    """Project hooks in the order in which those of one package run."""

    def place(node: Node) -> tuple[str, int]:
        number = re.search(r"-(\d+)$", node.unique_id)
        return when_it_runs(node.unique_id), int(number[1]) if number else 0

    return sorted(hooks, key=place)


def not_followed(hooks: Iterable[Hook]) -> list[tuple[str, bytes]]:
    """The hooks that may write to any relation: whose they are, and their text.

    Those of a run in their order; in which order nodes are built is not known.
    """
    hooks_of_anything = [(when_it_runs(hook.owner), hook.text) for hook in hooks if hook.anything]
    of_runs = [hook for hook in hooks_of_anything if hook[0].startswith("operation.")]
    return [*of_runs, *sorted({*hooks_of_anything}.difference(of_runs))]


def nodes_that_may_write(project: Project, macros: Macros) -> list[Node]:
    """The nodes that may be or have a hook that writes to other relations than their own."""
    if macros_that_run(macros):
        return [*project.nodes.values()]
    if project.with_statements is not None:
        return [project.nodes[unique_id] for unique_id in project.with_statements]
    return with_statements(project.nodes.values())


def with_statements(nodes: Iterable[Node]) -> list[Node]:
    """The nodes for which dbt may run a statement beside their query (`Project.with_statements`)."""
    return [
        node
        for node in nodes
        if "run_query" in (raw := node.raw_code)
        # Called with a block of its own; most texts have none, which is found out faster.
        or ("%" in raw and "statement" in raw)
        or (config := node.config).get("pre-hook")
        or config.get("post-hook")
        or config.get("sql_header")
        or node.resource_type == "operation"
    ]


def macros_that_run(macros: Macros) -> set[str]:
    """The user's macros that run a statement of their own beside the query, which may write."""
    texts = ((u, macros.macros[u]) for u in macros.user)
    return {
        unique_id
        for unique_id, macro in texts
        if not macro.name.startswith(("test_", "materialization_")) and _may_write(macro.macro_sql)
    }


def _may_write(text: str) -> bool:
    """Whether the Jinja of a text may run a statement of its own that writes, by its words.

    Neither ``if execute`` nor ``values.update(...)`` does, nor does a comment.
    """
    if (
        not any(word in text for word in _RUNNING)  # which is quick, and mostly there is none
        or not _RUNS.search(text)
        or not _WRITES.search(text)
    ):
        return False
    parts = pieces(text)
    if parts is None:
        return True
    said = [
        value
        for part in parts
        for (_, before), (kind, value) in pairwise((("", ""), *part.tokens))
        if kind == "string"
        or (kind == "name" and (value, before == ".") not in (("execute", False), ("update", True)))
    ]
    in_tags = " ".join(said)
    data = (part.text for part in parts if part.kind == "data")
    return _RUNS_IT.search(in_tags) is not None and any(map(_WRITES.search, (in_tags, *data)))


_THIS: Final = re.compile(r"\{\{-?\s*this\s*-?\}\}")
_OWN: Final = "dbt_ripple_own_table"
_RUN_BY: Final = frozenset({"run_hooks", "make_hook_config", "before_begin", "in_transaction"})
"""Macros of dbt by which hooks run."""


def deletes_as_filters(context: ProjectContext, analysis: Analysis) -> dict[str, Node]:
    """The models whose hooks only delete from their own table, without hooks and with a filter.

    ``post_hook: delete from {{ this }} where is_test`` leaves the rows of which the condition is false or
    NULL. So the table holds what ``select * from (query) where (is_test) is not true`` returns: columns and
    the other rows stay as they were. Such models are written in this way, so that what is proven of filters
    holds of them (rule 15).

    It is done where this is all that the hooks can do: each is one DELETE without any other Jinja than
    ``{{ this }}``, which keeps or deletes a row by its own values (`flow.hook_statements.deleted_rows`), of
    columns that the table has. The model is a table without a contract (a contract's types may change the
    values that the condition sees), built by dbt's own materialization and hooks, and its hooks run when it
    is built.

    Args:
        context: of the project.
        analysis: of the project.

    Returns:
        By unique_id; the nodes of the project stay as they are.
    """
    project, macros = context.project, context.macros
    if not _RUN_BY.isdisjoint(macros.users_by_name) or macros.of_materialization("table"):
        return {}
    nodes = {}
    for unique_id, node in project.nodes.items():
        if node.resource_type != "model" or not hooks_of(node):
            continue
        analysed = analysis.nodes.get(unique_id)
        text = _filtered(node, analysed, context.dialect) if analysed is not None else None
        if text is not None:
            config = {k: v for k, v in node.config.items() if k not in ("pre-hook", "post-hook")}
            nodes[unique_id] = msgspec.structs.replace(node, compiled_code=text, config=config)
    return nodes


def _filtered(node: Node, analysed: NodeAnalysis, dialect: str) -> str | None:
    """The query of what is left in a model's table; None where its hooks may do anything else."""
    if (
        node.materialized != "table"
        or node.contract_enforced
        or node.is_python
        or not node.compiled_code
        or analysed.status != "analysed"
    ):
        return None
    columns = [name.lower() for name in analysed.columns]
    left = []
    for when, sql in hooks_of(node):
        statement = _THIS.sub(_OWN, sql).strip().removesuffix(";")
        if when != "post-hook" or re.search(r"\{[{%#]", statement):
            return None
        # Here, because hardly any model deletes, and a parser takes its time to load.
        from dbt_ripple.flow.hook_statements import deleted_rows

        deleted = deleted_rows(statement, _OWN, dialect)
        if deleted is None or any(columns.count(name) != 1 for name in deleted.columns):
            return None
        left.append(f"({deleted.condition}) is not true")
    query = node.compiled_code.strip().removesuffix(";")
    return f"select * from (\n{query}\n) as {_OWN} where {' and '.join(left)}"
