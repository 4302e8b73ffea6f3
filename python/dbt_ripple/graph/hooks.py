"""What hooks do to other relations than their own: what they write, make and read.

A hook's SQL is in no compiled query, and it may write to any relation: ``insert into audit.log``,
``delete from {{ ref('orders') }}``. Whoever reads such a relation reads what the hook has left. A hook
may also make what queries call (a macro or function of the database, a variable of the session).

Hooks are Jinja that was not rendered, and no parse tree is made of them. Their statements are told
by their words: what stands where a statement has its target is written, every other relation that
is named is read. Statements that are known to leave rows alone (GRANT, ANALYZE, COMMENT, ...) write
nothing. What the words do not tell may be any relation that the hook or a macro it calls names; where
they name none, it may be anything at all. So may a statement that is not known, one that other
statements go by (SET, USE, ATTACH, ...), and one that does not stand in a text (see `hook_statements`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints, hooks_of
from dbt_ripple.graph.hook_statements import (
    BRANCH,
    GIVEN,
    SAYS,
    HookStatements,
    is_boundary,
    without_conditions,
)
from dbt_ripple.graph.jinja import names, normalised, tagged
from dbt_ripple.graph.macros import APPLY_TAGS, Macros
from dbt_ripple.graph.relation_names import RelationNames

THIS: Final = "__this__"
"""The relation of the hook's own node, in a text without its Jinja."""

_UNKNOWN: Final = "__unknown__"
"""What only Jinja knows."""

ANY_NAME: Final = "*"
"""Among names that are made: Jinja puts one together."""


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


_PART: Final = r"""(?:`[^`]+`|"[^"]+"|\[\w+\]|[\w$]+)"""
_NAME: Final = rf"(?P<name>{_PART}(?:\s*\.\s*{_PART})*)"
_DOTTED: Final = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})+(?!\s*\()")
_READ: Final = re.compile(
    rf"\b(?:join|into|update|using|table|view|overwrite)\s+{_NAME}(?!\s*[(.\w])", re.I
)
_FROM: Final = re.compile(
    rf"\bfrom\s+((?:{_PART}(?:\s*\.\s*{_PART})*(?:\s+(?:as\s+)?\w+)?\s*,\s*)*{_PART}(?:\s*\.\s*{_PART})*)",
    re.I,
)
_WRITTEN: Final = re.compile(
    r"""
    (?: \binsert\s+(?:or\s+\w+\s+)?(?:into|overwrite)\s+(?:table\s+)?
      | \breplace\s+into\s+
      | \bupdate\s+(?:or\s+\w+\s+)?(?:only\s+)?(?!set\b)
      | \bdelete\s+from\s+(?:only\s+)?
      | \bmerge\s+(?:with\s+schema\s+evolution\s+)?into\s+
      | (?<![\w.])merge\s+(?!into\b|with\b)
      | \btruncate\s+(?:table\s+)?(?:only\s+)?(?:if\s+exists\s+)?
      | \bcopy\s+(?:into\s+)?(?=[^\s(@'])(?!.*\bto\s+(?:''|program\b|stdout\b|__))
      | \brefresh\s+materialized\s+view\s+(?:concurrently\s+)?
      | \bmsck\s+repair\s+table\s+
      | \b(?:restore|undrop)\s+(?:table|view)\s+
      | \bload\s+data\b.*?\binto\s+table\s+
      | \b(?:create|drop)\s+(?:or\s+(?:replace|alter|refresh)\s+)?
        (?:(?:external|global|live|local|materialized|multiset|recursive|secure|set|streaming|temp|temporary|transient
          |unlogged|volatile|dynamic|hybrid|iceberg|force)\s+)*
        (?:table|view)\s+(?:if\s+(?:not\s+)?exists\s+)?
      | (?<=\binto\s)\s*(?=\w[\w.]*\s+from\b)
    )
    """
    + _NAME,
    re.I | re.X | re.S,
)
"""Where a statement has its target, and the target."""

_DELETED: Final = re.compile(rf"\s*delete\s+(?!from\b){_NAME}", re.I)
_ALTERED: Final = re.compile(
    r"\balter\s+(?:materialized\s+|external\s+|dynamic\s+|foreign\s+|iceberg\s+)*(?:table|view)\s"
    r"|\b(?:swap|exchange|rename|switch)\b",
    re.I,
)
_IN_ALTER: Final = re.compile(
    rf"\b(?:table|view|to|with|exists|only)\s+(?!(?:if|only|exists|table|view)\b){_NAME}", re.I
)
_DOES_ANYTHING: Final = frozenset("call do eval exec execute invoke perform".split())
"""Statements that run what is not in their text."""

_OF_DATABASE: Final = frozenset("attach detach install load".split())
_OF_SESSION: Final = frozenset("discard pragma reset set unset use".split())
"""Statements that decide what others after them find, in the database or in their session."""

_SESSION_ALTERED: Final = re.compile(r"\s*alter\s+session\b", re.I)
_TAKES_RIGHTS: Final = frozenset({"deny", "revoke"})
_PARTS: Final = re.compile(
    r"""\s*(?!(?:alter|create|drop)\b)(?:
      (?:and|as|asc|between|by|case|cast|cluster|comment|constraint|cross|desc|distinct|else|end|except|exists
        |filter|for|foreign|format|from|full|group|having|if|ilike|in|inner|intersect|interval|into|is|join|key
        |lateral|left|like|limit|location|natural|not|null|offset|on|options|or|order|outer|over|partition
        |partitioned|primary|qualify|right|rows|stored|tblproperties|then|to|union|unique|using|values|when|where
        |window|with)\b
      | \w+ (?: \s*[^\s\w`"'] | \s*$ | \s+(?:and|as|asc|between|collate|desc|else|end|filter|from|ilike|in|is
        |like|not|nulls|on|or|over|then|using|when|where)\b)
      | [^\s\w]
      | \d
    )""",
    re.I | re.X,
)
"""What a part of a statement begins with; other words that another one follows may be a statement."""

_MADE: Final = re.compile(
    r"""
    \b(?: create | drop | alter | replace )\s+(?:or\s+(?:replace|alter)\s+)?
    (?:(?:aggregate|external|global|local|persistent|scalar|secure|table|temp|temporary|transient|window)\s+)*
    (?:macro|function|procedure|sequence|type|domain|enum|variable|stage|operator|aggregate
      |secret|file\s+format|model)\s+
    (?:if\s+(?:not\s+)?exists\s+)?
    """
    + _NAME
    + rf"|\bset\s+(?:(?:session|global|local)\s+)?variable\s+(?P<variable>{_PART})"
    + rf"|\bdeclare\s+(?:or\s+replace\s+)?(?:variable\s+)?(?P<declared>{_PART})",
    re.I | re.X,
)
_KEEPS_ROWS: Final = frozenset(
    """
    analyse analyze begin cache checkpoint clear cluster comment commit copy deallocate
    desc describe end explain export grant list listen lock ls notify optimize
    reindex release rollback savepoint show start uncache unlisten unlock vacuum
    """.split()
)
"""Statements that change no row of any relation."""

_KEEPS_ROWS_TOO: Final = re.compile(
    r"""\s*(?:
      (?:create|drop|alter)\s+(?:or\s+replace\s+)?(?:(?:bitmap|bloomfilter|clustered|columnstore|concurrently
        |fulltext|nonclustered|search|unique|vector)\s+)*
        (?:group|index|role|statistics|tag|user|warehouse)\b(?!.*\bset\b)
      | create\s+(?:or\s+replace\s+)?(?:transient\s+)?(?:catalog|database|schema)\b
      | alter\s+default\s+privileges\b
      | refresh\s+(?:table|function)?\s*(?!materialized)[\w.`"]+\s*$
    )""",
    re.I | re.X | re.S,
)
_BEGINS: Final = re.compile(
    r"\s*(?:begin|start)\b(?:\s+(?:transaction|tran|work|deferred|immediate|exclusive|atomic)\b)?",
    re.I,
)
_QUERY: Final = re.compile(r"\s*\(*\s*(?:select|with|from|values|table)\b", re.I)
_CALLED: Final = re.compile(r"((?:\w+\s*\.\s*)*\w+)\s*\(")
_READS_ONLY: Final = frozenset(
    """
    abs all and any array array_agg as avg bool_and bool_or by case cast ceil coalesce concat count
    current_date current_timestamp date date_add date_diff date_sub date_trunc dateadd datediff
    dense_rank distinct else exists extract filter first first_value floor format from getdate
    greatest having if ifnull iff in interval is join lag last last_value lead least left length like
    limit list lower ltrim max md5 min mod not now nullif nvl on or over partition position rank regexp_replace
    replace right round row_number rtrim select sha2 split_part string_agg strpos substr substring sum
    then to_char to_date to_timestamp trim try_cast union unnest upper using values when where with
    """.split()
)
"""What stands before a parenthesis in a query and writes nothing."""

_RUNS: Final = re.compile(r"\b(?:run_query|statement)\b")
_WRITES: Final = re.compile(
    r"\b(?:insert|update|delete|merge|truncate|copy|create|replace|drop|alter|set)\b", re.I
)
_BLOCK: Final = re.compile(
    r"\{%[-+]?\s*(?:call\s+statement|set\s+\w+\s*[-+]?%\}).*?\{%[-+]?\s*end(?:call|set)\s*[-+]?%\}",
    re.S,
)
"""Of a model's code, text that Jinja keeps to be run."""

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_NO_CODE: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/|\{\#.*?\#\}", re.S)
"""Literals and comments, once the tags are gone that may stand in them."""

_JINJA_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_SQL: Final = re.compile(
    r"\b(?:insert|update|delete|merge|truncate|copy|create|replace|drop|alter|call|do|eval|exec|execute"
    r"|attach|detach|discard|install|invoke|perform|pragma|reset|revoke|set|unset|use"
    r"|refresh|restore|undrop|load|msck|from|join)\b",
    re.I,
)
_REFERENCE: Final = re.compile(r"\b(?:builtins\s*\.\s*)?(ref|source)\s*\(([^()]*)\)")
_ARGUMENT: Final = re.compile(
    r"""(?P<keyword>\b\w+\s*=\s*)?(?P<quote>['"])(?P<text>.*?)(?P=quote)"""
)
_PLAIN_NAME: Final = re.compile(r"\w+(?:\.\w+)*")
_NUMBERED: Final = re.compile(r"__given(\d+)__")
_RELATION: Final = re.compile(r"__relation(\d+)__")
_ONLY_A_NAME: Final = re.compile(r"\s*\w+(?:\s*\.\s*(?:render\(\s*\)|include\([^()]*\)))?\s*")
_ACTS: Final = frozenset(
    """
    alter_column_type alter_relation_add_remove_columns create_table_as create_view_as
    drop_relation drop_relation_if_exists load_csv_rows rename_relation reset_csv_table
    truncate_relation
    """.split()
)
"""dbt's macros and methods that write to the relation they are given."""


OURS: Final = frozenset({APPLY_TAGS})

_IN_A_BRANCH: Final = (_DOES_ANYTHING | _OF_DATABASE) - {"do"}


class _Text(NamedTuple):
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


class _Effects(NamedTuple):
    """What a statement writes and makes, and whether it may do anything else."""

    writes: set[str]
    makes: set[str]
    anything: bool
    of_session: bool = False


class Hooks:
    """The hooks of one project that do something to other relations than their own.

    Args:
        project: with its nodes.
        macros: of the project.
        names: of the project.

    Attributes:
        all: those hooks.
        writing: the hooks that may write to each relation, by unique_id; to one that dbt does not
            know, by the last part of its name.
        making: the hooks that make something queries may call, by its name.
    """

    def __init__(self, project: Project, macros: Macros, names: RelationNames) -> None:
        self.project = project
        self.macros = macros
        self.names = names
        self.settings = ConfigFingerprints(project, macros)
        self.relations: list[frozenset[str]] = []
        self.marks: dict[frozenset[str], str] = {}
        self.seen: dict[str, Hook] = {}
        self.expressions: list[tuple[int, str]] = []
        self.targets: set[int] = set()
        self.macros_that_run = macros_that_run(macros)
        self.all = [hook for hook in self._hooks() if hook.writes or hook.makes or hook.anything]
        self.writing: dict[str, list[Hook]] = {}
        self.making: dict[str, list[Hook]] = {}
        for hook in self.all:
            for written in hook.writes:
                self.writing.setdefault(written, []).append(hook)
            for made in hook.makes:
                self.making.setdefault(made, []).append(hook)
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
        for unique_id, node in self.project.nodes.items():
            if not self.macros_that_run and not _may_write(node):
                continue
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
            statement = self.seen[sql] = self._seen(sql)
        writes = statement.writes - {THIS, owner}
        reads = {owner if u == THIS else u for u in statement.reads}
        text = statement.text
        of_all = statement.of_session and self.project.nodes[owner].resource_type == "operation"
        if read := self.settings.read_by(sql, self.project.nodes[owner]):
            text = digest(text, read)
        return statement._replace(
            owner=owner,
            text=text,
            writes=writes,
            reads=frozenset(reads),
            anything=statement.anything or of_all,
        )

    def _seen(self, sql: str) -> Hook:
        """What a hook of this text does, whose soever it is: its own relation is ``THIS``."""
        called = self.macros.closure(self.macros.named_in(sql)) & self.macros.user
        of_macros = {u: self.macros.macros[u].macro_sql for u in sorted(called) if u not in OURS}
        self.expressions, self.targets = [], set()
        texts = [*self._texts(sql, of=0)]
        for of, of_macro in enumerate(of_macros.values(), 1):
            texts += self._texts(of_macro, of)
        mentioned = set[str]().union(*(text.mentioned for text in texts))
        passed = set[str]().union(*(text.passed for text in texts))
        writes: set[str] = set()
        makes: set[str] = set()
        reads = mentioned | (passed & self.project.nodes.keys())
        run = HookStatements(sql, of_macros, self.macros, self.can_be_read)
        anything = not run.all_read()
        of_session = False
        words: set[str] = set()
        for text in texts:
            plain = _NO_CODE.sub(lambda f: "''" if f[0][0] == "'" else " ", text.plain)
            words.update(_WORD.findall(plain.lower()))
            for statement in plain.split(";"):
                parts = statement.split(BRANCH)
                statement = " ".join(parts)
                done = self.statement(statement, text.given)
                writes |= done.writes
                makes |= done.makes
                of_session = of_session or done.of_session
                if text.string:  # where it is run, `run` reads it
                    reads |= self.named(statement)
                    continue
                anything = anything or any(map(_in_a_branch, parts[1:]))
                named = self.named(statement)
                reads |= named
                if done.anything:
                    writes |= named
                    anything = True
            if text.acts:
                writes.add(GIVEN)
        if _UNKNOWN in writes or GIVEN in writes:  # one of those the hook names, or any
            anything = anything or _UNKNOWN in writes or not (mentioned or passed)
            told = (run.told(self.expressions[n][1], self.expressions[n][0]) for n in self.targets)
            anything = anything or not all(told)
            writes |= mentioned | passed
            writes |= {u for t in (sql, *of_macros.values()) for u in self.named_in_strings(t)}
        fingerprint = digest(
            normalised(sql).encode("utf-8", "surrogatepass"),
            self.macros.fingerprint(called),
            self.macros.variables(sql).encode(),
        )
        marks = {GIVEN, _UNKNOWN}
        return Hook(
            "",
            fingerprint,
            frozenset(writes - marks),
            frozenset(makes),
            frozenset(reads - marks),
            anything,
            of_session,
            frozenset(words),
        )

    # -- texts ------------------------------------------------------------------------------------

    def _texts(self, text: str, of: int) -> Iterator[_Text]:
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
            if SAYS.match(tag.inside):
                pieces.append(" ")
                continue
            inside = self.with_marks(tag.inside, mentioned)
            acts = acts or not names(inside).isdisjoint(_ACTS)
            between = ";" if is_boundary(tag) else BRANCH
            pieces.append(self.mark(inside, of) if tag.kind == "{{" else between)
            literals = _JINJA_LITERAL.findall(inside)
            if any(" " in literal and _SQL.search(literal) for literal in literals):
                inner.append(self.as_sql(without_conditions(inside), of))
            elif not given and tag.kind == "{{":
                for literal in literals:
                    if _PLAIN_NAME.fullmatch(literal[1:-1]):
                        passed |= self.target(literal[1:-1])
        pieces.append(text[at:])
        plain = ";".join((*before, "".join(pieces)))
        yield _Text(plain, mentioned, passed, acts, given)
        inner += blocks
        for piece in inner:
            yield _Text(piece, set(), set(), False, True, True)

    def named_in_strings(self, text: str) -> Iterator[str]:
        """The relations that strings in the Jinja of a text may mean."""
        for tag in tagged(text):
            for literal in _JINJA_LITERAL.findall(tag.inside):
                if _PLAIN_NAME.fullmatch(literal[1:-1]) and not SAYS.match(tag.inside):
                    yield from self.relation(literal[1:-1])

    def with_marks(self, inside: str, mentioned: set[str]) -> str:
        """The inside of a tag with a mark for each relation that it names."""

        def mark(match: re.Match[str]) -> str:
            relations = frozenset(self.references(match[1], match[2])) or frozenset([GIVEN])
            mentioned.update(relations)
            name = self.marks.get(relations)
            if name is None:
                name = self.marks[relations] = f"__relation{len(self.relations)}__"
                self.relations.append(relations)
            return name

        marked = _REFERENCE.sub(mark, inside)
        if "this" in marked and "this" in names(marked):
            mentioned.add(THIS)
            marked = re.sub(r"(?<![\w.'\"])this\b(?!\s*\.\s*(?!render|include)\w)", THIS, marked)
        return marked

    def references(self, kind: str, arguments: str) -> set[str]:
        """The relations that a ``ref`` or ``source`` may mean; none where its names are not plain."""
        texts = [a["text"] for a in _ARGUMENT.finditer(arguments) if a["keyword"] is None]
        if not texts:
            return set()
        canonical = self.names.canonical
        return {
            canonical.get(u, u)
            for u in self.names.by_dbt_name.get(texts[-1], ())
            if (u.startswith("source.")) == (kind == "source")
            and (len(texts) < 2 or texts[0] in u.split("."))
        }

    # -- statements -------------------------------------------------------------------------------

    def statement(self, statement: str, given: bool) -> _Effects:
        """What a statement writes and makes; of one in a macro, which may be a part only."""
        makes: set[str] = set()
        for match in _MADE.finditer(statement):
            last = _last(match["name"] or match["variable"] or match["declared"])
            makes.add(ANY_NAME if _marked(last) else last)
        targets = [m["name"] for p in (_WRITTEN, _DELETED) for m in p.finditer(statement)]
        if _ALTERED.search(statement):
            targets += [m["name"] for m in _IN_ALTER.finditer(statement)]
        if targets or makes:
            return _Effects({u for name in targets for u in self.target(name)}, makes, False)
        statement = _BEGINS.sub("", statement, count=1)
        words = _WORD.findall(statement)
        first = words[0].lower() if words else ""
        if not words or _marked(words[0]) or _KEEPS_ROWS_TOO.match(statement):
            return _Effects(set(), makes, False)
        if first in _TAKES_RIGHTS:
            named = self.named(statement)
            return _Effects(named, makes, not named)
        of_session = False
        if _QUERY.match(statement):
            anything = any(f[1].lower() not in _READS_ONLY for f in _CALLED.finditer(statement))
        elif first in _KEEPS_ROWS:
            anything = False
        else:
            may_do_anything = first in _DOES_ANYTHING or first in _OF_DATABASE
            of_session = first in _OF_SESSION or _SESSION_ALTERED.match(statement) is not None
            anything = may_do_anything or (
                not of_session and (not given or _PARTS.match(statement) is None)
            )
        return _Effects(set(), makes, anything, of_session)

    def can_be_read(self, text: str) -> bool:
        """Whether it is certain what a string does that Jinja may hand over as a statement."""
        for statement in f"{text} {GIVEN}".split(";"):  # its target may come next
            parts = statement.split(BRANCH)
            if self.statement(" ".join(parts), True).anything or any(map(_in_a_branch, parts[1:])):
                return False
        return True

    def target(self, name: str) -> set[str]:
        """The relations that the target of a statement may mean; there is always one."""
        unique_ids = self.relation(name)
        self.targets.update(int(given[1]) for given in _NUMBERED.finditer(name))
        certain = bool(unique_ids) and "." in name and not _marked(name)
        return unique_ids if certain or _marked(_last(name)) else {*unique_ids, _last(name)}

    def named(self, statement: str) -> set[str]:
        """The relations that a statement names, wherever in it."""
        unique_ids: set[str] = set()
        for match in _DOTTED.finditer(statement):
            unique_ids |= self.relation(match[0])
        for match in _READ.finditer(statement):
            unique_ids |= self.relation(match["name"])
        for match in _FROM.finditer(statement):
            for item in match[1].split(","):
                unique_ids |= self.relation(item.split()[0])
        for word in _WORD.findall(statement):
            if _marked(word):
                unique_ids |= self.relation(word)
        return unique_ids

    def relation(self, name: str) -> set[str]:
        """The relations of the project that a name in a hook may mean, or a mark."""
        if _marked(name):
            if name in (THIS, _UNKNOWN, GIVEN):
                return {name}
            if _NUMBERED.fullmatch(name):
                return {GIVEN}
            if (number := _RELATION.fullmatch(name)) is not None:
                return set(self.relations[int(number[1])])
            last = _last(name)  # Jinja gives a part of the name
            if last == GIVEN or _NUMBERED.fullmatch(last):
                return {GIVEN}
            return {_UNKNOWN} if _marked(last) else self.named_so(last)
        if "." not in name:
            return self.named_so(_last(name))
        unique_id = self.names.node_named(name)
        return {unique_id} if unique_id is not None else set()

    def named_so(self, last: str) -> set[str]:
        """The relations of this name in any schema."""
        return set(self.names.by_identifier.get(last, ()))

    def mark(self, inside: str, of: int) -> str:
        """What stands in place of a tag that writes something into the SQL."""
        plain = inside.strip()
        if re.fullmatch(
            r"__(?:this|relation\d+)__(?:\s*\.\s*(?:render|include)\([^()]*\))?", plain
        ):
            return plain.partition(".")[0].strip()
        if re.match(r"\w+(?:\s*\.\s*\w+)?\s*\(", plain) and not re.match(
            r"(?:var|env_var)\b", plain
        ):
            return self.given(plain, of)  # a call: what it writes is in the macro's own text
        return self.given(plain, of) if of and _ONLY_A_NAME.fullmatch(plain) else _UNKNOWN

    def given(self, expression: str, of: int) -> str:
        """A mark for what an expression of Jinja stands for, in one of the texts."""
        self.expressions.append((of, expression))
        return f"__given{len(self.expressions) - 1}__"

    def as_sql(self, inside: str, of: int) -> str:
        """The strings in a tag as one text, with marks for what Jinja puts between them."""
        pieces = []
        at = 0
        for literal in _JINJA_LITERAL.finditer(inside):
            pieces += [self.outside(inside[at : literal.start()], of), literal[0][1:-1]]
            at = literal.end()
        pieces.append(self.outside(inside[at:], of))
        return "".join(pieces)

    def outside(self, text: str, of: int) -> str:
        """What stands between two strings of a tag: marks of relations, or what only Jinja knows."""
        if "~" not in text and "%" not in text and "+" not in text:
            return " ; "
        words = _WORD.findall(text)
        if not words or _marked(words[0]):
            return words[0] if words else ""
        return self.given(text.strip(" ~%+()[],"), of)


def _in_a_branch(text: str) -> bool:
    """Whether a text that may be left out begins with a statement that may do anything."""
    word = _WORD.match(text.lstrip())
    return word is not None and word[0].lower() in _IN_A_BRANCH


def _last(name: str) -> str:
    """The last part of a name, lower case and without quotes."""
    return re.split(r"\s*\.\s*", name.strip())[-1].strip('`"[]').lower()


def _marked(text: str) -> bool:
    return any(mark in text for mark in (THIS, _UNKNOWN, "__given", "__relation"))


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


def may_write(project: Project, macros: Macros) -> bool:
    """Whether anything in a project may be a hook that writes to other relations than its own."""
    return any(map(_may_write, project.nodes.values())) or bool(macros_that_run(macros))


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


def _may_write(node: Node) -> bool:
    raw = node.raw_code
    return (
        node.resource_type == "operation"
        or "run_query" in raw
        or "statement" in raw
        or bool(node.config.get("sql_header"))
        or bool(hooks_of(node))
    )
