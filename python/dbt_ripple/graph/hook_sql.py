"""The SQL of hooks and of the macros they call, told by its words.

Hooks are Jinja that was not rendered, and no parse tree is made of them. What Jinja puts into a statement
is a mark: for a relation that ``ref``, ``source`` or ``this`` names (`HookSql.with_marks`), for an expression whose
value may be known elsewhere (`HookSql.given`), or for what only Jinja knows. What stands where a statement has its
target is written, every other relation that is named is read. Statements that are known to leave rows
alone (GRANT, ANALYZE, COMMENT, ...) write nothing; a statement that is not known may do anything.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dbt_ripple.graph.hook_statements import BRANCH, GIVEN
from dbt_ripple.graph.jinja import names
from dbt_ripple.graph.relation_names import RelationNames

THIS: Final = "__this__"
"""The relation of the hook's own node, in a text without its Jinja."""

UNKNOWN: Final = "__unknown__"
"""What only Jinja knows."""

ANY_NAME: Final = "*"
"""Among names that are made: Jinja puts one together."""

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

WORD: Final = re.compile(r"[A-Za-z_]\w*")
JINJA_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_REFERENCE: Final = re.compile(r"\b(?:builtins\s*\.\s*)?(ref|source)\s*\(([^()]*)\)")
_ARGUMENT: Final = re.compile(
    r"""(?P<keyword>\b\w+\s*=\s*)?(?P<quote>['"])(?P<text>.*?)(?P=quote)"""
)
_NUMBERED: Final = re.compile(r"__given(\d+)__")
_RELATION: Final = re.compile(r"__relation(\d+)__")
_ONLY_A_NAME: Final = re.compile(r"\s*\w+(?:\s*\.\s*(?:render\(\s*\)|include\([^()]*\)))?\s*")

_IN_A_BRANCH: Final = (_DOES_ANYTHING | _OF_DATABASE) - {"do"}


class Effects(NamedTuple):
    """What a statement writes and makes, and whether it may do anything else."""

    writes: set[str]
    makes: set[str]
    anything: bool
    of_session: bool = False


class HookSql:
    """Reads the statements of one project's hooks.

    Args:
        relation_names: of the project.

    Attributes:
        expressions: what Jinja writes into the SQL that is read: the number of its text, and the expression.
        targets: the places in `expressions` of those that stand as the target of a statement.
    """

    def __init__(self, relation_names: RelationNames) -> None:
        self.names = relation_names
        self.relations: list[frozenset[str]] = []
        self.marks: dict[frozenset[str], str] = {}
        self.expressions: list[tuple[int, str]] = []
        self.targets: set[int] = set()

    def begin(self) -> None:
        """Begin to read a hook."""
        self.expressions, self.targets = [], set()

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

    def statement(self, statement: str, given: bool) -> Effects:
        """What a statement writes and makes; of one in a macro, which may be a part only."""
        makes: set[str] = set()
        for match in _MADE.finditer(statement):
            last = _last(match["name"] or match["variable"] or match["declared"])
            makes.add(ANY_NAME if _marked(last) else last)
        targets = [m["name"] for p in (_WRITTEN, _DELETED) for m in p.finditer(statement)]
        if _ALTERED.search(statement):
            targets += [m["name"] for m in _IN_ALTER.finditer(statement)]
        if targets or makes:
            return Effects({u for name in targets for u in self.target(name)}, makes, False)
        statement = _BEGINS.sub("", statement, count=1)
        words = WORD.findall(statement)
        first = words[0].lower() if words else ""
        if not words or _marked(words[0]) or _KEEPS_ROWS_TOO.match(statement):
            return Effects(set(), makes, False)
        if first in _TAKES_RIGHTS:
            named = self.named(statement)
            return Effects(named, makes, not named)
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
        return Effects(set(), makes, anything, of_session)

    def can_be_read(self, text: str) -> bool:
        """Whether it is certain what a string does that Jinja may hand over as a statement."""
        for statement in f"{text} {GIVEN}".split(";"):  # its target may come next
            parts = statement.split(BRANCH)
            if self.statement(" ".join(parts), True).anything or any(map(in_a_branch, parts[1:])):
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
        for word in WORD.findall(statement):
            if _marked(word):
                unique_ids |= self.relation(word)
        return unique_ids

    def relation(self, name: str) -> set[str]:
        """The relations of the project that a name in a hook may mean, or a mark."""
        if _marked(name):
            if name in (THIS, UNKNOWN, GIVEN):
                return {name}
            if _NUMBERED.fullmatch(name):
                return {GIVEN}
            if (number := _RELATION.fullmatch(name)) is not None:
                return set(self.relations[int(number[1])])
            last = _last(name)  # Jinja gives a part of the name
            if last == GIVEN or _NUMBERED.fullmatch(last):
                return {GIVEN}
            return {UNKNOWN} if _marked(last) else self.named_so(last)
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
        return self.given(plain, of) if of and _ONLY_A_NAME.fullmatch(plain) else UNKNOWN

    def given(self, expression: str, of: int) -> str:
        """A mark for what an expression of Jinja stands for, in one of the texts."""
        self.expressions.append((of, expression))
        return f"__given{len(self.expressions) - 1}__"

    def as_sql(self, inside: str, of: int) -> str:
        """The strings in a tag as one text, with marks for what Jinja puts between them."""
        pieces = []
        at = 0
        for literal in JINJA_LITERAL.finditer(inside):
            pieces += [self.outside(inside[at : literal.start()], of), literal[0][1:-1]]
            at = literal.end()
        pieces.append(self.outside(inside[at:], of))
        return "".join(pieces)

    def outside(self, text: str, of: int) -> str:
        """What stands between two strings of a tag: marks of relations, or what only Jinja knows."""
        if "~" not in text and "%" not in text and "+" not in text:
            return " ; "
        words = WORD.findall(text)
        if not words or _marked(words[0]):
            return words[0] if words else ""
        return self.given(text.strip(" ~%+()[],"), of)


def in_a_branch(text: str) -> bool:
    """Whether a text that may be left out begins with a statement that may do anything."""
    word = WORD.match(text.lstrip())
    return word is not None and word[0].lower() in _IN_A_BRANCH


def _last(name: str) -> str:
    """The last part of a name, lower case and without quotes."""
    return re.split(r"\s*\.\s*", name.strip())[-1].strip('`"[]').lower()


def _marked(text: str) -> bool:
    return any(mark in text for mark in (THIS, UNKNOWN, "__given", "__relation"))
