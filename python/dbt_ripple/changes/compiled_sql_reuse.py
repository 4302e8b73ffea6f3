"""Base's compiled SQL for what head did not touch, so that dbt need not compile all of head.

A node of head that dbt has only parsed takes over base's compiled SQL where the text dbt would
compile is proved to be the same but for the names of relations, which are mapped to head's. Proved
means, of everything that enters a compiled text:

* its own: code, config, arguments of a generic test, what each of its references means (in order,
  with versions: `ref('m')` is another model once `latest_version` has changed), and which of that is
  ephemeral and so part of the text (then all of this holds for it, too);
* macros: every macro of either side whose name stands anywhere in the Jinja it reaches, called,
  dispatched or in a string, has the same text. That is wider than dbt's own
  ``state:modified.macros``, which does not see calls in branches that are dead while it parses
  (``is_incremental()``, ``execute``);
* the context: ``var``, ``env_var``, ``target`` and the like only where the caller has proved them
  the same (:class:`CompileConditions`), what queries the warehouse only where what it sees is compared
  apart (rule 11), the graph only where all that can be read of it is the same. ``is_incremental()`` and
  ``should_store_failures()`` are answered as on base; the time, ``invocation_id`` and what a string of SQL
  says of the target are base's.

Everything else is compiled, not guessed at: the reason says which of these it was. Which nodes that ask the
warehouse while dbt compiles have to ask again, `asked_again` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.changes.compile_inputs import (
    NOTHING_PROVED,
    CompileConditions,
    CompiledText,
    CompileInputs,
    defined,
    names_on_other_side,
    nodes_above,
    rename,
)
from dbt_ripple.changes.dbt_vars import Variables
from dbt_ripple.graph.introspection import IntrospectedParts, Introspection
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.traversal import reach_all
from dbt_ripple.reasons import Reason


@dataclass
class ReusedSql:
    """What `reuse_compiled_sql` did.

    Attributes:
        head: with base's compiled SQL where that is proved to be head's.
        taken: the unique_ids of the nodes that have it.
        left_to_compile: head's other nodes without compiled SQL, each with the reason why not.
    """

    head: Project
    taken: list[str] = field(default_factory=list)
    left_to_compile: dict[str, Reason] = field(default_factory=dict)


def reuse_compiled_sql(
    base: Project, head: Project, conditions: CompileConditions = NOTHING_PROVED
) -> ReusedSql:
    """Head with base's compiled SQL of uncompiled nodes where that is proved to be theirs.

    Args:
        base: compiled.
        head: parsed.
        conditions: what is proved to be the same for both.

    Returns:
        What was taken over, and the rest, both in head's order.
    """
    return _taken(head, CompileInputs(base, head, conditions))


def reuse_compiled_sql_of_artifacts(base: Project, head: Project) -> ReusedSql:
    """`reuse_compiled_sql` under all that the artifacts of both sides prove of how they were compiled.

    What a node queries while it compiles is part of its fingerprint (rule 11), and so not of its text.
    To compile it would show what the warehouse holds now, which the change has not built yet.
    """
    variables = Variables(base, head)
    same_target = variables.same_target
    return _taken(
        head, _sides_of_artifacts(base, head, variables, target=same_target, warehouse=True)
    )


def _taken(head: Project, sides: CompileInputs) -> ReusedSql:
    texts: dict[str, str | None] = {}
    to_compile: dict[str, Reason] = {}
    for node in head.uncompiled():
        text = sides.text_of(node.unique_id)
        if isinstance(text, CompiledText):
            texts[node.unique_id] = text.sql
        else:
            to_compile[node.unique_id] = text
    reused = head.with_compiled(texts)
    nodes = dict(reused.nodes)
    for unique_id in texts:  # dbt notes some macros only as it compiles, and base's hold head's
        noted = {*nodes[unique_id].depends_on.macros}
        if not noted.issuperset(of_base := sides.base.nodes[unique_id].depends_on.macros):
            nodes[unique_id] = nodes[unique_id].calling(noted.union(of_base))
    return ReusedSql(reused.having(nodes=nodes), list(texts), to_compile)


@dataclass
class AgreedText:
    """What `agree` found, by unique_id.

    Attributes:
        base: head's compiled SQL of nodes of which base has none.
        head: base's compiled SQL of nodes of which head has none, or other text.
    """

    base: dict[str, str | None] = field(default_factory=dict)
    head: dict[str, str | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.base or self.head)


def agree(base: Project, head: Project, unique_ids: Iterable[str]) -> AgreedText:
    """The text that nodes have on both sides where only how they were compiled differs.

    ``dbt build`` and ``dbt compile`` may write two texts for one code (``flags.WHICH``, the day, the
    target, a relation that is not there yet), and of a node that failed or was skipped dbt writes none.
    Where all that decides the text is proved to be the same but for the target, by the rules of
    `reuse_compiled_sql`, the node has not changed: it has base's text on both sides, or head's where
    base has none, or where the target may decide what it reads: head's target is where tests will run.
    What it queries while it compiles is part of its fingerprint (rule 11), and so not of its text.

    Nor has it changed where the two texts are the same but for what each tells of the command that
    compiled it: when that began, to the second, and its id.

    Args:
        base: compiled.
        head: likewise.
        unique_ids: the nodes to ask of, on both sides.

    Returns:
        The nodes of which a side has another text, with the one they share.
    """
    done = AgreedText()
    sides: CompileInputs | None = None
    same_target = False
    for unique_id in unique_ids:
        before, now = base.nodes[unique_id], head.nodes[unique_id]
        if before.compiled_code is not None and now.compiled_code is not None:
            names = names_on_other_side(base, head, nodes_above(head, unique_id))
            if isinstance(names, dict):
                as_on_head = rename(before.compiled_code, names)
                if as_on_head == now.compiled_code:
                    continue
                if without_run(as_on_head, base) == without_run(now.compiled_code, head):
                    done.head[unique_id] = as_on_head
                    continue
        if sides is None:
            variables = Variables(base, head)
            sides = _sides_of_artifacts(base, head, variables, target=True, warehouse=False)
            same_target = variables.same_target
        if sides.dbt_differs or sides.differs(unique_id):
            continue
        back = before.compiled_code is None
        if not same_target and not back and sides.goes_by_target(unique_id):
            if now.compiled_code is None:
                continue
            back = True
        of, to = (now, before) if back else (before, now)
        text = sides.renamed(unique_id, of.compiled_code or "", back=back)
        if isinstance(text, CompiledText) and text.sql != to.compiled_code:
            (done.base if back else done.head)[unique_id] = text.sql
    return done


def without_run(text: str, project: Project) -> str:
    """Compiled SQL without what it tells of the command that compiled it."""
    runs = project.runs
    for run in runs:
        if run.invocation_id:
            text = text.replace(run.invocation_id, _OF_THE_RUN)

    def of_the_run(match: re.Match[str]) -> str:
        try:
            time = as_utc(datetime.fromisoformat(match[0]))
        except ValueError:
            return match[0]
        near = any(abs(time - run.started_at) < _NEAR for run in runs)
        return _OF_THE_RUN if near else match[0]

    return _TIME.sub(of_the_run, text) if runs else text


_OF_THE_RUN: Final = "\x00"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")
_NEAR: Final = timedelta(seconds=2)
"""dbt notes two times of one start, and a text may have no fraction of the second."""


def _sides_of_artifacts(
    base: Project, head: Project, variables: Variables, *, target: bool, warehouse: bool
) -> CompileInputs:
    conditions = CompileConditions(
        environment=base.same_environment and head.same_environment,
        target=target,
        command=True,
        introspection=True,
        warehouse=warehouse,
    )
    return CompileInputs(base, head, conditions, variables)


def other_names(base: Project, head: Project) -> dict[str, str]:
    """Base's names of relations that have another one on head, each with that.

    A name that two nodes have on base, as a seed and a source of it, and not on head is not among them.
    """
    names: dict[str, set[str]] = {}
    for unique_id, now in head.nodes.items():
        then = base.nodes.get(unique_id)
        if then is not None and then.relation_name and now.relation_name:
            names.setdefault(then.relation_name, set()).add(now.relation_name)
    return {was: now for was, (now, *others) in names.items() if not others and was != now}


def as_not_deferred(base: Project, head: Project) -> Project:
    """Head, of which compiled SQL has head's own names of the relations that a run deferred to base.

    Args:
        base: what was deferred to.
        head: as a run with ``--defer`` has left it, which every command that is run says of itself.

    Returns:
        Head itself where no SQL is written otherwise.
    """
    if not head.run_args.get("defer") or not (names := other_names(base, head)):
        return head
    own = {node.relation_name for node in head.nodes.values()}
    texts: dict[str, str | None] = {}
    for node in head.nodes.values():
        if not node.compiled_code or node.is_python:
            continue
        read = {
            name
            for unique_id in _inlined_parents(head, node)
            if (then := base.nodes.get(unique_id)) and (name := then.relation_name) in names
        }
        renamed = {name: names[name] for name in sorted(read - own)}
        if renamed and (sql := rename(node.compiled_code, renamed)) != node.compiled_code:
            texts[node.unique_id] = sql
    return head.with_compiled(texts)


def _inlined_parents(project: Project, node: Node) -> set[str]:
    """What a node reads, by ephemeral models, too."""
    nodes = project.nodes
    above = reach_all([node.unique_id], project.parents, through=lambda u: nodes[u].is_ephemeral)
    return above.keys() - {node.unique_id}


_READ: Final = re.compile(r"""(?:\.|\b(?:from|join|update|into|table)\b)\s*["`\[]?(\w+)""", re.I)
"""Where the name of a relation can stand in SQL."""


def asked_again(base: Project, head: Project, asking: Iterable[str]) -> set[str]:
    """The nodes of base that have to ask the warehouse again, as the comparison may need other answers.

    A node that has the same code on both sides, and that is neither above nor below anything that differs,
    has the same SQL on both sides, whatever that is. So an answer that the warehouse gave before does, if the
    node only asks for the columns of relations that it reads: which relations these are, its code says.

    Args:
        base: compiled, with what the warehouse answered before.
        head: parsed, with the same vars and project file.
        asking: the nodes of base that ask the warehouse something.
    """
    asking = set(asking)
    if base.macros != head.macros:
        return asking
    differ = {
        unique_id
        for unique_id in {*base.nodes, *head.nodes}
        if not _same(base.nodes.get(unique_id), head.nodes.get(unique_id))
    }
    if any(unique_id.startswith("operation.") for unique_id in differ):
        return asking  # a hook may write to any relation
    below = {u for side in (base, head) for u in reach_all(differ, side.children)}
    above = {u for side in (base, head) for u in reach_all(differ, side.parents)}
    nodes = [node for side in (base, head) for u in below if (node := side.nodes.get(u))]
    names = {(node.identifier or node.alias or node.name).lower() for node in nodes}
    introspection = Introspection(base, Macros(base))

    def may_be_stale(node: Node) -> bool:
        reads = introspection.of(node)
        if reads.values or reads.exist or reads.parts == IntrospectedParts.EVERYTHING:
            return True
        return not names.isdisjoint(map(str.lower, _READ.findall(node.compiled_code or "")))

    return {u for u in asking if u in below or u in above or may_be_stale(base.nodes[u])}


def _same(then: Node | None, now: Node | None) -> bool:
    """Whether a node is defined as before; of a seed whose file dbt has not read, that is not known."""
    if then is None or now is None:
        return False
    if isinstance(now.checksum, dict) and now.checksum.get("name") == "path":
        return False
    return defined(then) == defined(now)
