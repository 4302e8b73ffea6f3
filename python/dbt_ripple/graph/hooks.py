"""What hooks do to other relations than their own: what they write, make and read.

A hook's SQL is in no compiled query, and it may write to any relation: ``insert into audit.log``,
``delete from {{ ref('orders') }}``. Whoever reads such a relation reads what the hook has left. A hook
may also make what queries call (a macro or function of the database, a variable of the session).

Hooks are Jinja that was not rendered, and no parse tree is made of them. Their statements are told
by their words: what stands where a statement has its target is written, every other relation that
is named is read. Statements that are known to leave rows alone (GRANT, ANALYZE, COMMENT, ...) write
nothing. What the words do not tell may be any relation that the hook or a macro it calls names; where
they name none, it may be anything at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.names import dialect_of
from dbt_ripple.graph.jinja import names, normalised, tagged
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.names import Names
from dbt_ripple.graph.settings import Settings, hooks_of

THIS: Final = "__this__"
"""The relation of the hook's own node, in a text without its Jinja."""

_UNKNOWN: Final = "__unknown__"
"""What only Jinja knows."""

_GIVEN: Final = "__given__"
"""What a macro was given, or what a variable of Jinja holds."""

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
    """

    owner: str
    text: bytes
    writes: frozenset[str]
    makes: frozenset[str]
    reads: frozenset[str]
    anything: bool


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
    analyse analyze attach begin cache checkpoint clear cluster comment commit copy deallocate deny
    desc describe detach discard end explain export grant install list listen load lock ls notify optimize pragma
    reindex release reset revoke rollback savepoint set show start uncache unlisten unload unlock
    unset use vacuum
    """.split()
)
"""Statements that change no row of any relation."""

_KEEPS_ROWS_TOO: Final = re.compile(
    r"""\s*(?:
      (?:create|drop|alter)\s+(?:or\s+replace\s+)?(?:(?:bitmap|bloomfilter|clustered|columnstore|fulltext
        |nonclustered|row|search|unique|vector)\s+)*
        (?:catalog|database|extension|index|masking|policy|role|schema|statistics|tag|user|warehouse
          |session|system|group)\b
      | alter\s+default\s+privileges\b
      | refresh\s+(?:table|function)?\s*(?!materialized)[\w.`"]+\s*$
    )""",
    re.I | re.X,
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
    r"\b(?:insert|update|delete|merge|truncate|copy|create|replace|drop|alter|call|exec|execute"
    r"|refresh|restore|undrop|load|msck|from|join)\b",
    re.I,
)
_REFERENCE: Final = re.compile(r"\b(?:builtins\s*\.\s*)?(ref|source)\s*\(([^()]*)\)")
_ARGUMENT: Final = re.compile(
    r"""(?P<keyword>\b\w+\s*=\s*)?(?P<quote>['"])(?P<text>.*?)(?P=quote)"""
)
_PLAIN_NAME: Final = re.compile(r"\w+(?:\.\w+)*")
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


class _Text(NamedTuple):
    """A piece of SQL without its Jinja, with marks for the relations that Jinja names in it.

    Attributes:
        mentioned: those relations.
        passed: the relations that strings may mean which a macro is given.
        acts: whether Jinja itself writes, by one of dbt's own macros.
        given: whether it stands in a macro, or in a string.
    """

    plain: str
    mentioned: set[str]
    passed: set[str]
    acts: bool
    given: bool


class _Done(NamedTuple):
    """What a statement writes and makes, and whether it may do anything else."""

    writes: set[str]
    makes: set[str]
    anything: bool


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

    def __init__(self, project: Project, macros: Macros, names: Names) -> None:
        self.project = project
        self.macros = macros
        self.names = names
        self.settings = Settings(project, macros)
        self.relations: list[frozenset[str]] = []
        self.marks: dict[frozenset[str], str] = {}
        self.seen: dict[str, Hook] = {}
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

    def called_in(self, sql: str) -> set[str]:
        """What hooks make and a query names."""
        found = set(self.making.keys() & {ANY_NAME})
        if self._made is not None:
            found.update(word.lower() for word in self._made.findall(sql))
        return found

    def _hooks(self) -> Iterator[Hook]:
        for unique_id, node in self.project.nodes.items():
            if not self.macros_that_run and not _may_write(node):
                continue
            if node.resource_type == "operation":
                yield self.hook(unique_id, node.raw_code)
                continue
            for _, sql in hooks_of(node):
                yield self.hook(unique_id, sql)
            if header := node.config.get("sql_header"):
                yield self.hook(unique_id, str(header))
            if node.resource_type in ("model", "snapshot") and not node.is_python:
                for sql in self.run_by(node):
                    yield self.hook(unique_id, sql)._replace(anything=False)

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
        known = self.seen.get(sql)
        if known is None:
            known = self.seen[sql] = self._seen(sql)
        writes = known.writes - {THIS, owner}
        reads = {owner if u == THIS else u for u in known.reads}
        text = known.text
        if read := self.settings.read_by(sql, self.project.nodes[owner]):
            text = digest(text, read)
        return known._replace(owner=owner, text=text, writes=writes, reads=frozenset(reads))

    def _seen(self, sql: str) -> Hook:
        """What a hook of this text does, whose soever it is: its own relation is ``THIS``."""
        called = self.macros.closure(self.macros.named_in(sql)) & self.macros.user
        texts = [*self._texts(sql, given=False)]
        for unique_id in sorted(called):
            texts += self._texts(self.macros.macros[unique_id].macro_sql, given=True)
        mentioned = set[str]().union(*(text.mentioned for text in texts))
        passed = set[str]().union(*(text.passed for text in texts))
        writes: set[str] = set()
        makes: set[str] = set()
        reads = mentioned | (passed & self.project.nodes.keys())
        anything = False
        for text in texts:
            plain = _NO_CODE.sub(lambda f: "''" if f[0][0] == "'" else " ", text.plain)
            for statement in plain.split(";"):
                done = self.statement(statement, text.given)
                writes |= done.writes
                makes |= done.makes
                named = self.named(statement)
                reads |= named
                if done.anything:
                    writes |= named
                    anything = True
            if text.acts:
                writes.add(_GIVEN)
        if _UNKNOWN in writes or _GIVEN in writes:  # one of those the hook names, or any
            anything = anything or _UNKNOWN in writes or not (mentioned or passed)
            writes |= mentioned | passed
        fingerprint = digest(
            normalised(sql).encode("utf-8", "surrogatepass"),
            self.macros.fingerprint(called),
            self.macros.variables(sql).encode(),
        )
        marks = {_GIVEN, _UNKNOWN}
        return Hook(
            "",
            fingerprint,
            frozenset(writes - marks),
            frozenset(makes),
            frozenset(reads - marks),
            anything,
        )

    # -- texts ------------------------------------------------------------------------------------

    def _texts(self, text: str, given: bool) -> Iterator[_Text]:
        """The SQL of a piece of Jinja: around its tags, and in the strings within them."""
        pieces: list[str] = []
        mentioned: set[str] = set()
        passed: set[str] = set()
        inner: list[str] = []
        acts = False
        at = 0
        for tag in tagged(text):
            pieces.append(text[at : tag.start])
            at = tag.end
            inside = self.with_marks(tag.inside, mentioned)
            acts = acts or not names(inside).isdisjoint(_ACTS)
            pieces.append(_mark(inside, given) if tag.kind == "{{" else " ")
            literals = _JINJA_LITERAL.findall(inside)
            if any(" " in literal and _SQL.search(literal) for literal in literals):
                inner.append(_as_sql(inside))
            elif not given and tag.kind == "{{":
                for literal in literals:
                    if _PLAIN_NAME.fullmatch(literal[1:-1]):
                        passed |= self.target(literal[1:-1])
        pieces.append(text[at:])
        yield _Text("".join(pieces), mentioned, passed, acts, given)
        for piece in inner:
            yield _Text(piece, set(), set(), False, True)

    def with_marks(self, inside: str, mentioned: set[str]) -> str:
        """The inside of a tag with a mark for each relation that it names."""

        def mark(found: re.Match[str]) -> str:
            relations = frozenset(self.references(found[1], found[2])) or frozenset([_GIVEN])
            mentioned.update(relations)
            known = self.marks.get(relations)
            if known is None:
                known = self.marks[relations] = f"__relation{len(self.relations)}__"
                self.relations.append(relations)
            return known

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

    def statement(self, statement: str, given: bool) -> _Done:
        """What a statement writes and makes; of one in a macro, which may be a part only."""
        makes: set[str] = set()
        for match in _MADE.finditer(statement):
            last = _last(match["name"] or match["variable"] or match["declared"])
            makes.add(ANY_NAME if _marked(last) else last)
        targets = [m["name"] for p in (_WRITTEN, _DELETED) for m in p.finditer(statement)]
        if _ALTERED.search(statement):
            targets += [m["name"] for m in _IN_ALTER.finditer(statement)]
        if targets or makes:
            return _Done({u for name in targets for u in self.target(name)}, makes, False)
        words = _WORD.findall(statement)
        anything = False
        if words and not _marked(words[0]) and not _KEEPS_ROWS_TOO.match(statement):
            first = words[0].lower()
            if _QUERY.match(statement):
                anything = any(f[1].lower() not in _READS_ONLY for f in _CALLED.finditer(statement))
            elif first not in _KEEPS_ROWS:
                anything = not given or first in _DOES_ANYTHING
        return _Done(set(), makes, anything)

    def target(self, name: str) -> set[str]:
        """The relations that the target of a statement may mean; there is always one."""
        found = self.relation(name)
        certain = bool(found) and "." in name and not _marked(name)
        return found if certain or _marked(_last(name)) else {*found, _last(name)}

    def named(self, statement: str) -> set[str]:
        """The relations that a statement names, wherever in it."""
        found: set[str] = set()
        for match in _DOTTED.finditer(statement):
            found |= self.relation(match[0])
        for match in _READ.finditer(statement):
            found |= self.relation(match["name"])
        for match in _FROM.finditer(statement):
            for item in match[1].split(","):
                found |= self.relation(item.split()[0])
        for word in _WORD.findall(statement):
            if _marked(word):
                found |= self.relation(word)
        return found

    def relation(self, name: str) -> set[str]:
        """The relations of the project that a name in a hook may mean, or a mark."""
        if _marked(name):
            if name in (THIS, _UNKNOWN, _GIVEN):
                return {name}
            if (number := _RELATION.fullmatch(name)) is not None:
                return set(self.relations[int(number[1])])
            last = _last(name)  # Jinja gives a part of the name
            return {_UNKNOWN} if _marked(last) else self.named_so(last)
        if "." not in name:
            return self.named_so(_last(name))
        known = self.names.node_named(name)
        return {known} if known is not None else set()

    def named_so(self, last: str) -> set[str]:
        """The relations of this name in any schema."""
        return set(self.names.by_identifier.get(last, ()))


def _last(name: str) -> str:
    """The last part of a name, lower case and without quotes."""
    return re.split(r"\s*\.\s*", name.strip())[-1].strip('`"[]').lower()


def _marked(text: str) -> bool:
    return any(mark in text for mark in (THIS, _UNKNOWN, _GIVEN, "__relation"))


def _mark(inside: str, given: bool) -> str:
    """What stands in place of a tag that writes something into the SQL."""
    plain = inside.strip()
    if re.fullmatch(r"__(?:this|relation\d+)__(?:\s*\.\s*(?:render|include)\([^()]*\))?", plain):
        return plain.partition(".")[0].strip()
    if re.match(r"\w+(?:\s*\.\s*\w+)?\s*\(", plain) and not re.match(r"(?:var|env_var)\b", plain):
        return _GIVEN  # a call: what it writes is in the macro's own text
    return _GIVEN if given and _ONLY_A_NAME.fullmatch(plain) else _UNKNOWN


def _as_sql(inside: str) -> str:
    """The strings in a tag as one text, with marks for what Jinja puts between them."""
    pieces = []
    at = 0
    for literal in _JINJA_LITERAL.finditer(inside):
        pieces += [_outside(inside[at : literal.start()]), literal[0][1:-1]]
        at = literal.end()
    pieces.append(_outside(inside[at:]))
    return "".join(pieces)


def _outside(text: str) -> str:
    """What stands between two strings of a tag: marks of relations, or what only Jinja knows."""
    if "~" not in text and "%" not in text and "+" not in text:
        return " ; "
    words = _WORD.findall(text)
    return "".join(word if _marked(word) else _GIVEN for word in words[:1]) if words else ""


def hooks_that_write(project: Project) -> list[Hook]:
    """The hooks of a project that do something to other relations than their own."""
    macros = Macros(project)
    if not any(map(_may_write, project.nodes.values())) and not macros_that_run(macros):
        return []
    return Hooks(project, macros, Names(project, dialect_of(project.metadata.adapter_type))).all


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
