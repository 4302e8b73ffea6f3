"""What hooks do to other relations than their own: what they write, make and read.

A hook's SQL is in no compiled query, and it may write to any relation: ``insert into audit.log``,
``delete from {{ ref('orders') }}``. Whoever reads such a relation reads what the hook has left. A hook
may also make what queries call (a macro or function of the database, a variable of the session).

Their statements are told by their words (see `hook_sql`). What the words do not tell may be any relation that
the hook or a macro it calls names; where they name none, it may be anything at all. So may a statement
that is not known, one that other statements depend on (SET, USE, ATTACH, ...), and one that does not stand in
a text (see `hook_statements`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints, hooks_of
from dbt_ripple.graph.hook_sql import (
    ANY_NAME,
    JINJA_LITERAL,
    THIS,
    UNKNOWN,
    WORD,
    HookSql,
    in_a_branch,
)
from dbt_ripple.graph.hook_statements import (
    BRANCH,
    GIVEN,
    ONLY_A_MESSAGE,
    HookStatements,
    is_boundary,
    without_conditions,
)
from dbt_ripple.graph.jinja import names, normalised, tagged
from dbt_ripple.graph.macros import APPLY_TAGS, Macros
from dbt_ripple.graph.relation_names import RelationNames


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
        of_session: whether it changes settings of its session.
        words: of its statements, lower case: what other hooks write or make may be among them.
    """

    owner: str
    text: bytes
    writes: frozenset[str]
    makes: frozenset[str]
    reads: frozenset[str]
    anything: bool
    of_session: bool = False
    words: frozenset[str] = frozenset()


_RUNS: Final = re.compile(r"\b(?:run_query|statement)\b")
_WRITES: Final = re.compile(
    r"\b(?:insert|update|delete|merge|truncate|copy|create|replace|drop|alter|set)\b", re.I
)
_BLOCK: Final = re.compile(
    r"\{%[-+]?\s*(?:call\s+statement|set\s+\w+\s*[-+]?%\}).*?\{%[-+]?\s*end(?:call|set)\s*[-+]?%\}",
    re.S,
)
"""Of a model's code, text that Jinja keeps to be run."""

_NO_CODE: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/|\{\#.*?\#\}", re.S)
"""Literals and comments, once the tags are gone that may stand in them."""
_SQL: Final = re.compile(
    r"\b(?:insert|update|delete|merge|truncate|copy|create|replace|drop|alter|call|do|eval|exec|execute"
    r"|attach|detach|discard|install|invoke|perform|pragma|reset|revoke|set|unset|use"
    r"|refresh|restore|undrop|load|msck|from|join)\b",
    re.I,
)
_PLAIN_NAME: Final = re.compile(r"\w+(?:\.\w+)*")
_ACTS: Final = frozenset(
    """
    alter_column_type alter_relation_add_remove_columns create_table_as create_view_as
    drop_relation drop_relation_if_exists load_csv_rows rename_relation reset_csv_table
    truncate_relation
    """.split()
)
"""dbt's macros and methods that write to the relation they are given."""


_OURS: Final = frozenset({APPLY_TAGS})
"""Macros of this package: what they write is known."""


class _HookText(NamedTuple):
    """A piece of SQL without its Jinja, with marks for the relations that Jinja names in it.

    Attributes:
        mentioned: those relations.
        passed: the relations that strings may mean which a macro is given.
        acts: whether Jinja itself writes, by one of dbt's own macros.
        given: whether it stands in a macro, or in a string.
        string: whether it is a string or a block that Jinja keeps, which may only be words.
    """

    plain: str
    mentioned: set[str]
    passed: set[str]
    acts: bool
    given: bool
    string: bool = False


class Hooks:
    """The hooks of one project that do something to other relations than their own.

    Args:
        project: with its nodes.
        macros: of the project.
        names: of the project.
        nodes: those that `nodes_that_may_write` has found in it.

    Attributes:
        all: those hooks.
        writing: the hooks that may write to each relation, by unique_id; to one that dbt does not
            know, by the last part of its name.
        making: the hooks that make something queries may call, by its name.
    """

    def __init__(
        self, project: Project, macros: Macros, names: RelationNames, nodes: Iterable[Node]
    ) -> None:
        self.project = project
        self.nodes = nodes
        self.macros = macros
        self.config_fingerprints = ConfigFingerprints(project, macros)
        self.sql = HookSql(names)
        self.seen: dict[str, Hook] = {}
        self.macros_that_run = macros_that_run(macros)
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
        """What other hooks write or make, and a hook names: keys of `Linker.left`."""
        keys = {key for key in self.writing.keys() & hook.words if key not in hook.writes}
        named = self.making.keys() if ANY_NAME in self.making else self.making.keys() & hook.words
        return keys | {f"{name}()" for name in named if name not in hook.makes}

    def called_in(self, sql: str) -> set[str]:
        """What hooks make and a query names."""
        functions = set(self.making.keys() & {ANY_NAME})
        if self._made is not None:
            functions.update(word.lower() for word in self._made.findall(sql))
        return functions

    def _hooks(self) -> Iterator[Hook]:
        yield from self._of_runs()
        for node in self.nodes:
            unique_id = node.unique_id
            if node.resource_type == "operation":
                continue
            for _, sql in hooks_of(node):
                yield self.hook(unique_id, sql)
            if header := node.config.get("sql_header"):
                yield self.hook(unique_id, str(header))
            if node.resource_type in ("model", "snapshot") and not node.is_python:
                for sql in self.run_by(node):
                    yield self.hook(unique_id, sql)._replace(anything=False)

    def _of_runs(self) -> Iterator[Hook]:
        """The ``on-run-*`` hooks in the order in which they run.

        What one does that is followed may be another thing behind one that may do anything.
        """
        before: dict[str, bytes] = {}
        for node in in_order(self.project.of_type("operation")):
            hook = self.hook(node.unique_id, node.raw_code)
            run = when_it_runs(node.unique_id)
            if hook.anything:
                before[run] = digest(before.get(run, b""), hook.text)
            elif run in before:
                hook = hook._replace(text=digest(hook.text, before[run]))
            yield hook

    def run_by(self, node: Node) -> Iterator[str]:
        """What a node's Jinja runs beside its query (``run_query``) and may write, as hooks."""
        raw = node.raw_code
        if ("run_query" in raw or "statement" in raw) and _RUNS.search(raw) and _WRITES.search(raw):
            blocks = [block[0] for block in _BLOCK.finditer(raw)]
            calls = [raw[t.start : t.end] for t in tagged(raw) if _RUNS.search(t.inside)]
            yield ";".join([*blocks, *calls])
        for unique_id in node.depends_on.macros:
            if unique_id in self.macros_that_run:
                yield f"{{{{ {self.macros.macros[unique_id].name}() }}}}"

    def hook(self, owner: str, sql: str) -> Hook:
        """What one hook does."""
        statement = self.seen.get(sql)
        if statement is None:
            statement = self.seen[sql] = self._analysed(sql)
        writes = statement.writes - {THIS, owner}
        reads = {owner if u == THIS else u for u in statement.reads}
        text = statement.text
        of_all = statement.of_session and self.project.nodes[owner].resource_type == "operation"
        if read := self.config_fingerprints.read_by(sql, self.project.nodes[owner]):
            text = digest(text, read)
        return statement._replace(
            owner=owner,
            text=text,
            writes=writes,
            reads=frozenset(reads),
            anything=statement.anything or of_all,
        )

    def _analysed(self, sql: str) -> Hook:
        """What a hook of this text does, whose soever it is: its own relation is ``THIS``."""
        called = self.macros.closure(self.macros.named_in(sql)) & self.macros.user
        of_macros = {u: self.macros.macros[u].macro_sql for u in sorted(called) if u not in _OURS}
        self.sql.begin()
        texts = [*self._texts(sql, of=0)]
        for of, of_macro in enumerate(of_macros.values(), 1):
            texts += self._texts(of_macro, of)
        mentioned = set[str]().union(*(text.mentioned for text in texts))
        passed = set[str]().union(*(text.passed for text in texts))
        writes: set[str] = set()
        makes: set[str] = set()
        reads = mentioned | (passed & self.project.nodes.keys())
        run = HookStatements(sql, of_macros, self.macros, self.sql.can_be_read)
        anything = not run.all_read()
        of_session = False
        words: set[str] = set()
        for text in texts:
            plain = _NO_CODE.sub(lambda f: "''" if f[0][0] == "'" else " ", text.plain)
            words.update(WORD.findall(plain.lower()))
            for statement in plain.split(";"):
                parts = statement.split(BRANCH)
                statement = " ".join(parts)
                done = self.sql.statement(statement, text.given)
                writes |= done.writes
                makes |= done.makes
                of_session = of_session or done.of_session
                if text.string:  # where it is run, `run` reads it
                    reads |= self.sql.named(statement)
                    continue
                anything = anything or any(map(in_a_branch, parts[1:]))
                named = self.sql.named(statement)
                reads |= named
                if done.anything:
                    writes |= named
                    anything = True
            if text.acts:
                writes.add(GIVEN)
        if UNKNOWN in writes or GIVEN in writes:  # one of those the hook names, or any
            anything = anything or UNKNOWN in writes or not (mentioned or passed)
            all_read = (
                run.is_read(self.sql.expressions[n][1], self.sql.expressions[n][0])
                for n in self.sql.targets
            )
            anything = anything or not all(all_read)
            writes |= mentioned | passed
            writes |= {u for t in (sql, *of_macros.values()) for u in self.named_in_strings(t)}
        fingerprint = digest(
            normalised(sql).encode("utf-8", "surrogatepass"),
            self.macros.fingerprint(called),
            self.macros.variables(sql).encode(),
        )
        marks = {GIVEN, UNKNOWN}
        return Hook(
            owner="",
            text=fingerprint,
            writes=frozenset(writes - marks),
            makes=frozenset(makes),
            reads=frozenset(reads - marks),
            anything=anything,
            of_session=of_session,
            words=frozenset(words),
        )

    # -- texts ------------------------------------------------------------------------------------

    def _texts(self, text: str, of: int) -> Iterator[_HookText]:
        """The SQL of a piece of Jinja: around its tags, and in the strings within them.

        Args:
            text: of the hook, or of a macro.
            of: which of these it is, the hook being the first.
        """
        given = of > 0
        pieces: list[str] = []
        blocks: list[str] = []
        mentioned: set[str] = set()
        passed: set[str] = set()
        inner: list[str] = []
        before: list[str] = []
        acts = False
        at = 0
        for tag in tagged(text):
            pieces.append(text[at : tag.start])
            at = tag.end
            if is_boundary(tag):
                if tag.inside.split()[:1] == ["endset"]:
                    blocks.append("".join(pieces))
                    pieces = []
                elif tag.inside.split()[:1] == ["set"]:
                    before.append("".join(pieces))
                    pieces = []
            if ONLY_A_MESSAGE.match(tag.inside):
                pieces.append(" ")
                continue
            inside = self.sql.with_marks(tag.inside, mentioned)
            acts = acts or not names(inside).isdisjoint(_ACTS)
            between = ";" if is_boundary(tag) else BRANCH
            pieces.append(self.sql.mark(inside, of) if tag.kind == "{{" else between)
            literals = JINJA_LITERAL.findall(inside)
            if any(" " in literal and _SQL.search(literal) for literal in literals):
                inner.append(self.sql.as_sql(without_conditions(inside), of))
            elif not given and tag.kind == "{{":
                for literal in literals:
                    if _PLAIN_NAME.fullmatch(literal[1:-1]):
                        passed |= self.sql.target(literal[1:-1])
        pieces.append(text[at:])
        plain = ";".join((*before, "".join(pieces)))
        yield _HookText(plain, mentioned, passed, acts, given)
        inner += blocks
        for piece in inner:
            yield _HookText(piece, set(), set(), False, True, True)

    def named_in_strings(self, text: str) -> Iterator[str]:
        """The relations that strings in the Jinja of a text may mean."""
        for tag in tagged(text):
            for literal in JINJA_LITERAL.findall(tag.inside):
                if _PLAIN_NAME.fullmatch(literal[1:-1]) and not ONLY_A_MESSAGE.match(tag.inside):
                    yield from self.sql.relation(literal[1:-1])


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
        if not macro.name.startswith(("test_", "materialization_"))
        and _RUNS.search(macro.macro_sql)
        and _WRITES.search(macro.macro_sql)
    }
