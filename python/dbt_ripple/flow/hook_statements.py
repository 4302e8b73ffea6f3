"""What a statement of a hook does: the relations it writes to, what it makes, what it reads, which rows it deletes.

Statements are read by sqlglot. What it has no tree for is looked up by its first words; what stands in no table
here may do anything. In the target of a statement the names are as they are written. A statement that only deletes
rows of one relation is a filter of the rows that stay (`deleted_rows`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.determinism import is_repeatable
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, Text, parse_statements, statement_texts, tokenize
from dbt_ripple.flow.reading.sqlglot_versions import ClusterProperty
from dbt_ripple.flow.statement_effects import ANY_NAME, ANYTHING, MARK, Effects

_WRITTEN: Final = frozenset({"TABLE", "VIEW"})
_MADE: Final = frozenset(
    """
    AGGREGATE DOMAIN ENUM FUNCTION MACRO MODEL OPERATOR PROCEDURE SECRET SEQUENCE STAGE TYPE VARIABLE
    """.split()
)
_KEPT: Final = frozenset(
    "CATALOG DATABASE GROUP INDEX ROLE SCHEMA STATISTICS TAG USER WAREHOUSE".split()
)
"""Kinds of things that hold no rows; to drop a schema or a database drops what is in it."""

_KEEP_ROWS: Final = frozenset(
    """
    analyse analyze cache checkpoint clear cluster comment commit deallocate desc describe end explain
    export grant list listen lock ls notify optimize reindex release rollback savepoint show
    uncache unlisten unlock vacuum
    """.split()
)
_OF_SESSION: Final = frozenset("discard pragma reset set unset use".split())
"""Statements that decide what others after them find in their session."""

_OF_TRANSACTION: Final = frozenset("deferred exclusive immediate tran transaction work".split())
_TAKE_RIGHTS: Final = frozenset({"deny", "revoke"})
_BEFORE_A_TARGET: Final = frozenset(
    """
    all bitmap bloomfilter clustered columnstore concurrently delete dynamic exists external from fulltext global if
    iceberg insert into load local materialized msck nonclustered not only or overwrite persistent refresh repair
    replace scalar search secure table temp temporary transient unique update vector view window
    """.split()
)
"""Words that may stand between the beginning of a statement that writes and its target."""

_BEFORE_A_NAME: Final = frozenset({"from", "into", "join", "on", "table", "to", "with"})
_OF_SCHEMA: Final = frozenset({"alter", "create", "drop"})
_WRITES: Final = _OF_SCHEMA.union(
    "copy delete insert merge msck refresh replace restore truncate undrop update".split()
)

_KEEPING_ACTIONS: Final = {
    exp.AddConstraint: {"expressions"},
    exp.AlterColumn: {"this", "allow_null", "comment"},
    exp.AlterDistStyle: {"this"},
    exp.AlterSet: {"expressions", "tag"},
    exp.AlterSortKey: {"this", "expressions", "compound"},
    ClusterProperty: {"expressions"},
}
"""What ALTER TABLE may do to constraints, properties and storage: to no row."""


def effects_of(sql: str, dialect: str) -> Effects:
    """What the statements of a text do.

    Args:
        sql: one or more statements.
        dialect: sqlglot's name of its engine.

    Example:
        >>> done = effects_of("grant select on a to b; insert into s.t select x from u", "duckdb")
        >>> sorted(done.writes), sorted(done.reads), done.anything
        (['s.t'], ['u'], False)
        >>> effects_of("call refresh()", "duckdb").anything
        True
    """
    done = Effects()
    try:
        statements = statement_texts(sql, dialect)
    except SqlglotError:
        return Effects(words=frozenset(re.findall(r"\w+", sql.lower())), anything=True)
    for statement in statements:
        done |= _effects(statement.sql, statement.tokens, dialect)
    return done


def _effects(sql: str, tokens: list[Any], dialect: str) -> Effects:
    if tokens[0].token_type is TokenType.COMMAND:  # of which the rest is one string
        try:
            tokens = [tokens[0], *tokenize("".join(t.text for t in tokens[1:]), dialect)]
        except SqlglotError:
            return ANYTHING
    literal = (TokenType.STRING, TokenType.NUMBER)
    written = (t.text.lower() for t in tokens if t.token_type not in literal)
    words = " ".join(written).split() or [""]
    known = Effects(words=frozenset(w for word in words for w in re.findall(r"\w+", word)))
    done = _of_first_word(words)
    if done is not None:
        return known | done
    is_read = True
    try:
        trees = parse_statements(sql, dialect)
    except UNREAD:
        is_read = False
        try:
            trees = parse_statements(sql, dialect, partly=True)
        except Exception:  # what is left of a tree may be none
            trees = []
    tree = trees[0] if trees and (is_read or isinstance(trees[0], _READ_IN_PART)) else None
    if len(trees) == 1 and tree is not None:
        done = _of_tree(tree, dialect)
        if done is not None:
            return known | done
    return known | _of_words(words, sql, dialect)


_READ_IN_PART: Final = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.TruncateTable)
"""Of which the target is known although the rest is no SQL that can be read."""


def _of_tree(tree: Any, dialect: str) -> Effects | None:
    """What a statement does by its parse tree; None where that does not tell."""
    kind = str(tree.args.get("kind") or "").upper()
    targets: list[Any] = []
    match tree:
        case exp.Query():
            into = tree.args.get("into")
            targets = [into.this] if into is not None else []
            if any(True for _ in tree.find_all(exp.Anonymous, exp.Command)):
                return _with(tree, targets, dialect) | ANYTHING
        case exp.Values() | exp.Insert(this=exp.Directory()):
            pass
        case exp.Insert() | exp.Update() | exp.Merge() | exp.LoadData():
            targets = [tree.this]
        case exp.Delete():
            targets = [tree.this, *(tree.args.get("tables") or ())]
        case exp.MultitableInserts():
            targets = [insert.this for insert in tree.find_all(exp.Insert)]
        case exp.TruncateTable():
            targets = list(tree.expressions)
        case exp.Copy():
            targets = [tree.this] if kind == "TRUE" else []
        case exp.Create() | exp.Drop():
            return _created(tree, kind, dialect)
        case exp.Alter() if kind in _WRITTEN:
            if not all(map(_keeps_rows, tree.args.get("actions") or [None])):
                targets = list(tree.find_all(exp.Table))
        case exp.Revoke():
            targets = list(tree.find_all(exp.Table)) or [None]
        case _:
            return None
    return _with(tree, targets, dialect)


def _keeps_rows(action: Any) -> bool:
    allowed = _KEEPING_ACTIONS.get(type(action), set[str]())
    return bool(allowed) and all(
        name in allowed for name, value in action.args.items() if value is not None and value != []
    )


def _created(tree: exp.Create | exp.Drop, kind: str, dialect: str) -> Effects | None:
    """What CREATE or DROP of something does."""
    of = tree.args.get("tables") or [tree.this]
    if kind in _WRITTEN:
        return _with(tree, of, dialect)
    if kind in _MADE:
        names = (_last(each) for each in of)
        return _with(tree, [], dialect) | Effects(makes=frozenset(names))
    return Effects() if _keeps(tree.key, kind) else None


def _with(tree: Any, targets: Iterable[Any], dialect: str) -> Effects:
    """Writes to some targets, and reads of all else that is named."""
    written: list[exp.Table] = []
    unknown = False
    for target in targets:
        table = target.this if isinstance(target, exp.Schema) else target
        if isinstance(table, exp.Table) and table.parts and table.name:
            written.append(table)
        else:
            unknown = True
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    others = [table for table in tree.find_all(exp.Table) if not any(table is w for w in written)]
    # T-SQL updates and deletes by an alias.
    aliases = {t.alias.lower(): t for t in others if t.alias}
    names = {
        _name(t, dialect) for w in written for t in (w, aliases.get(_name(w, dialect).lower())) if t
    }
    reads = {_name(table, dialect) for table in others if table.name}
    return Effects(
        writes=frozenset(names),
        reads=frozenset(name for name in reads if name.lower() not in ctes),
        anything=unknown,
    )


def _name(table: exp.Table, dialect: str) -> str:
    return ".".join(part.sql(dialect) for part in table.parts)


def _last(of: Any) -> str:
    """The last part of the name of something that is made."""
    while isinstance(of, (exp.UserDefinedFunction, exp.Schema, exp.Table, exp.Dot)):
        of = of.expression if isinstance(of, exp.Dot) else of.this
    name = (of.name if isinstance(of, exp.Expression) else "").lower()
    return ANY_NAME if not name or ("__" in name and MARK.search(name)) else name


def _of_first_word(words: list[str]) -> Effects | None:
    """What a statement does that is known by its first words; None where they do not tell."""
    if words[0] in _KEEP_ROWS and words[:2] != ["explain", "analyze"]:
        return Effects()
    if words[:2] == ["set", "variable"]:
        return _named(words) | Effects(makes=frozenset(words[2:3]))
    if words[0] in _OF_SESSION or words[:2] == ["alter", "session"]:
        return Effects(of_session=True)
    return None


def _of_words(words: list[str], sql: str, dialect: str) -> Effects:
    """What a statement does that has no tree."""
    first, rest = words[0], words[1:]
    if first in _TAKE_RIGHTS:
        named = _named(words)
        return named._replace(writes=named.reads) if named.reads else ANYTHING
    if first == "declare" and len(words) > 1:
        return Effects(makes=frozenset(rest[:1]))
    if first in ("begin", "start") and _OF_TRANSACTION.issuperset(rest):
        return Effects()
    if words[:3] == ["alter", "default", "privileges"]:
        return Effects()
    if first == "refresh" and "view" not in rest:  # what was cached of a relation
        return Effects()
    if first not in _WRITES:
        return ANYTHING
    at = next((i for i, word in enumerate(rest) if word not in _BEFORE_A_TARGET), len(rest))
    before, rest = rest[:at], rest[at:]
    if first in _OF_SCHEMA and {"table", "view"}.isdisjoint(before):
        kind = rest[0].upper() if rest else ""
        if kind not in _MADE:
            return Effects() if _keeps(first, kind, rest) else ANYTHING
        name = _dotted(rest[1:]).rpartition(".")[2]
        made = ANY_NAME if not name or MARK.search(name) else name
        return _named(rest[1:]) | Effects(makes=frozenset([made]))
    target, named = _dotted(rest), _named(rest)
    if not target:
        return ANYTHING
    swapped = named.reads if first == "alter" else frozenset[str]()
    return named | Effects(writes=swapped | {target})


def _keeps(statement: str, kind: str, words: Iterable[str] = ()) -> bool:
    """Whether to create, drop or alter something of a kind keeps the rows of all relations."""
    drops = statement == "drop" and kind in ("CATALOG", "DATABASE", "SCHEMA")
    return kind in _KEPT and not drops and (statement != "alter" or "set" not in words)


def _dotted(words: list[str]) -> str:
    """The name that begins here; empty where none does."""
    name = ""
    for i, word in enumerate(words):
        if (word == ".") != bool(i % 2) or not (word == "." or re.fullmatch(r"[\w$]+", word)):
            break
        name += word
    return name.rstrip(".")


def _named(words: list[str]) -> Effects:
    """All that may be a name of a relation in a statement that has no tree, as what it reads."""
    names = set()
    for i in range(len(words)):
        before = words[i - 1] if i else ""
        name = _dotted(words[i:]) if before != "." else ""
        if name and ("." in name or MARK.search(name) or before in _BEFORE_A_NAME):
            names.add(name)
    return Effects(reads=frozenset(names))


_PLAIN_DELETE: Final = frozenset({"this", "where"})
_OTHER_ROWS: Final = (exp.Query, exp.AggFunc, exp.Window, exp.Star, exp.Placeholder, exp.Parameter)
"""Expressions of which the value is up to more than the row."""


class Deleted(NamedTuple):
    """The rows that a statement deletes: those of which the condition is true.

    Attributes:
        condition: SQL over one row.
        columns: the names that it reads, lower case.
    """

    condition: str
    columns: frozenset[str]


def deleted_rows(sql: str, relation: str, dialect: str) -> Deleted | None:
    """Which rows a statement deletes of a relation, where that is all it does.

    Args:
        sql: one statement.
        relation: the name, a word, that stands for the relation in it.
        dialect: sqlglot's name of its engine.

    Returns:
        None unless each row goes or stays by its own values alone: without subqueries, other tables,
        chance, the time and functions that are not known.

    Example:
        >>> deleted_rows("delete from mine where qty < 1", "mine", "duckdb").columns
        frozenset({'qty'})
        >>> deleted_rows("delete from mine where id in (select id from other)", "mine", "duckdb")
    """
    try:
        text = Text(sql, dialect)
        tree = text.statement()
    except UNREAD:
        return None
    if not isinstance(tree, exp.Delete) or any(text.dropped(tree)):
        return None
    table, where = tree.this, tree.args.get("where")
    if (
        where is None
        or {name for name, value in tree.args.items() if value} != _PLAIN_DELETE
        or not isinstance(table, exp.Table)
        or {name for name, value in table.args.items() if value} != {"this"}
        or table.name != relation
    ):
        return None
    condition = where.this
    named = list(condition.find_all(exp.Column))
    if any(condition.find_all(*_OTHER_ROWS)) or any(column.table for column in named):
        return None
    kept = written(condition, dialect)
    if not is_repeatable(kept, dialect):
        return None
    return Deleted(kept, frozenset(column.name.lower() for column in named))
