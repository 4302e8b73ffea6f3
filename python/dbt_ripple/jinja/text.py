"""The one reader of Jinja: a text's parse tree, by the lexer and parser of Jinja itself.

dbt's own blocks (``materialization``, ``test``, ``docs``) and typed parameters of macros are read as dbt reads
them. A text that Jinja refuses has no tree: whoever asks about it has to take it for anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from jinja2 import nodes, pass_context
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.lexer import TokenStream
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment

from dbt_ripple.jinja.kept import kept


class _DbtParser(Parser):
    """Jinja's parser, with parameters that may have types: ``{% macro f(a: list[str]) %}``."""

    def parse_signature(self, node: nodes.Macro | nodes.CallBlock) -> None:
        args: list[nodes.Name] = []
        defaults: list[nodes.Expr] = []
        self.stream.expect("lparen")
        while self.stream.current.type != "rparen":
            if args:
                self.stream.expect("comma")
            arg = self.parse_assign_target(name_only=True)
            arg.set_ctx("param")
            if self.stream.skip_if("colon"):
                self._type()
            if self.stream.skip_if("assign"):
                defaults.append(self.parse_expression())
            elif defaults:
                self.fail("non-default argument follows default argument")
            args.append(arg)
        self.stream.expect("rparen")
        node.args, node.defaults = args, defaults

    def _type(self) -> None:
        self.stream.expect("name")
        if self.stream.skip_if("lbracket"):
            self._type()
            while self.stream.skip_if("comma"):
                self._type()
            self.stream.expect("rbracket")


class _Blocks(Extension):
    """dbt's own blocks, each a macro that is called otherwise.

    ``{% materialization name, adapter='x' %}``, ``{% test name(model, column_name) %}``, and for people ``{% docs name %}``.
    """

    tags = {"materialization", "test", "data_test", "docs"}  # noqa: RUF012  (Jinja's own attribute)

    def parse(self, parser: Parser) -> nodes.Node:
        begin = next(parser.stream)
        node = nodes.Macro(lineno=begin.lineno)
        name = parser.parse_assign_target(name_only=True).name
        node.name = f"{begin.value.removeprefix('data_')}_{name}"
        node.args, node.defaults = [], []
        if begin.value.endswith("test"):
            parser.parse_signature(node)
        while parser.stream.skip_if("comma"):
            parser.parse_assign_target(name_only=True)
            if parser.stream.skip_if("assign"):
                parser.parse_expression()
        node.body = parser.parse_statements((f"name:end{begin.value}",), drop_needle=True)
        return node


class DbtEnvironment(SandboxedEnvironment):
    """Jinja as dbt sets it up, in a sandbox. Nothing is computed while a text is read or made ready to be run."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols", _Blocks],
            optimized=False,
            cache_size=0,
        )
        self.filters |= dict.fromkeys(("as_text", "as_bool", "as_native", "as_number"), _itself)
        self.filters["is_list"] = lambda value: isinstance(value, list)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _DbtParser(self, source, name, filename).parse()

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        return TokenStream(self.lexer.wrap(_tokens(source), name, filename), name, filename)


@lru_cache(maxsize=512)
def _tokens(text: str) -> tuple[tuple[int, str, str], ...]:
    """A text as Jinja's lexer divides it; most are asked for as pieces, as a tree, and to be run."""
    return tuple(environment().lexer.tokeniter(text, None))


def _itself(value: object, *_: object) -> object:
    return value


@cache
def environment() -> DbtEnvironment:
    """The environment that all texts are read by; it runs none."""
    reading = DbtEnvironment()
    # Jinja works out what is constant, unless it is told that it has to wait for a context.
    reading.filters = dict.fromkeys(reading.filters, pass_context(_itself))
    reading.tests = dict.fromkeys(reading.tests, pass_context(_itself))
    return reading


@lru_cache(maxsize=64)
def tree_of(text: str) -> nodes.Template | None:
    """The parse tree of a text; None where Jinja refuses it, or it is too deep to be walked.

    It is shared, in parts with those of other texts: not to be changed. No node is in it twice.

    Example:
        >>> tree_of("select {{ ref('a') }}").body[0].nodes[1].node.name
        'ref'
        >>> tree_of("{% if x %}") is None
        True
    """
    if _MORE.search(text):
        return _parsed(text)
    # Between SQL stand expressions alone, and many models have the same ones: each is parsed once.
    parts = ["", *_EXPRESSION.split(text.removesuffix("\n")), ""]
    written: list[nodes.Expr] = []
    met: set[str] = set()
    for before, data, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        if before:
            # Twice in one text they are two places, which visitors tell apart.
            parse = _parsed if before in met else _parsed_expression
            met.add(before)
            match parse(before):
                case nodes.Template(body=[nodes.Output(nodes=[expression])]):
                    written.append(expression)
                case _:
                    return _parsed(text)
        data = data.lstrip() if before.endswith("-}}") else data
        data = data.rstrip() if after.startswith("{{-") else data
        if "{{" in data + after[:1]:
            return _parsed(text)
        if data:
            written.append(nodes.TemplateData(data))
    template = nodes.Template([nodes.Output(written)] if written else [])
    template.environment = environment()
    return template


def _parsed(text: str) -> nodes.Template | None:
    """The tree of a text as a whole."""
    try:
        tree = environment().parse(text)
    except (TemplateSyntaxError, RecursionError):
        return None
    if most_levels(text) <= _DEEPEST:
        return tree
    level: list[nodes.Node] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return tree
    return None


def most_levels(text: str) -> int:
    """How many levels the tree of a text has at most: the tokens of its longest tag, and three for each block."""
    blocks = longest = length = 0
    for _, kind, _ in _tokens(text):
        blocks += kind == "block_begin"
        length = 0 if kind in _BEGINS else length + 1
        longest = max(longest, length)
    return longest + 3 * blocks + 5


_parsed_expression: Final = lru_cache(maxsize=4096)(_parsed)
_EXPRESSION: Final = re.compile(r"""(\{\{-?(?:[^{}'"\\]|'[^'\\]*'|"[^"\\]*")*\}\})""")
"""A tag whose end is seen without Jinja's lexer: braces and backslashes are in no part of it, braces in strings."""
_MORE: Final = re.compile(r"\{[%#]|\{\{\+|\r")
"""What a text has that is not SQL and expressions alone."""


@lru_cache(maxsize=512)
def in_tags(text: str) -> str:
    r"""All that stands in the tags of a text, and a little more, without reading it: what words cannot be in a tag.

    Example:
        >>> in_tags("select a -- this {{ f('}}', b) }} from {% if c %} d")
        " f('}}', b) \n if c "
    """
    parts = _OPENS.split(text)[1:]
    # What closes a tag may stand in a string before: the last that does is no earlier.
    return "\n".join(
        part[: max(part.rfind("}}"), part.rfind("%}")) % (len(part) + 1)] for part in parts
    )


_OPENS: Final = re.compile(r"\{[{%]")


def of_adapter(text: str, adapter: str) -> str:
    """A text without what stands in branches that only other adapters take, by ``target.type`` and their names.

    The tags of these branches stay, so that the rest is read as it was.

    Example:
        >>> of_adapter("{% if target.type == 'duckdb' %}a{% else %}b{% endif %}", "duckdb")
        "{% if target.type == 'duckdb' %}a{% else %}{% endif %}"
        >>> of_adapter("{% if target.type in ['spark'] %}a{% elif c %}b{% endif %}", "duckdb")
        "{% if target.type in ['spark'] %}{% elif c %}b{% endif %}"
        >>> of_adapter("{% if target.type == 'spark' or c %}a{% endif %}", "duckdb")
        "{% if target.type == 'spark' or c %}a{% endif %}"
    """
    if not _ASKS_FOR_ADAPTER.search(text):
        return text
    kept: list[str] = []
    blocks: list[_Block] = []
    try:
        for tag, written in _tags(text):
            word = tag.partition(" ")[0]
            if _OTHER_TARGET.search(tag):
                return text
            if word in ("elif", "else", "endif", "endfor"):
                block = blocks.pop()
            if not any(block.left_out for block in blocks):
                kept.append(written)
            if word in ("if", "for"):
                block = _Block(is_loop=word == "for")
            if word in ("if", "elif", "else", "for"):
                blocks.append(block.next(tag, adapter))
    except (TemplateSyntaxError, IndexError):
        return text
    return "".join(kept)


class _Block(NamedTuple):
    """A block around a place.

    Attributes:
        is_loop: whether it is no ``if``.
        is_met: whether this branch, or one before, is what the adapter takes.
        left_out: whether this branch is none that the adapter takes.
    """

    is_loop: bool
    is_met: bool = False
    left_out: bool = False

    def next(self, tag: str, adapter: str) -> _Block:
        """What a tag that opens a branch makes of it."""
        if self.is_loop:
            return self
        asked = _ASKED_ADAPTER.fullmatch(tag)
        if asked is None:
            return self._replace(left_out=self.is_met)
        is_it = (f"'{adapter}'" in asked["names"]) is not (
            "not" in asked["how"] or "!" in asked["how"]
        )
        return self._replace(is_met=self.is_met or is_it, left_out=self.is_met or not is_it)


def _tags(text: str) -> Iterator[tuple[str, str]]:
    """The words of each ``{% %}`` and ``{{ }}`` with its text; what stands between them without words."""
    tag: list[str] | None = None
    written = ""
    for _, kind, value in _tokens(text):
        written += value
        if kind in _BEGINS:
            tag = []
        elif kind in _ENDS:
            yield " ".join(tag or ()), written
            tag, written = None, ""
        elif tag is None:
            yield "", written
            written = ""
        elif kind != "whitespace":
            tag.append(_in_one_quote(value) if kind == "string" else value)
    if tag is not None:
        raise IndexError  # the last one is not closed


_ASKS_FOR_ADAPTER: Final = re.compile(r"\btarget\s*\.\s*type\b")
_OTHER_TARGET: Final = re.compile(r"(?<!\. )(?<!')\btarget\b(?! \.)")
"""A name ``target`` that is not asked for a property, so that it may be given another value."""
_ASKED_ADAPTER: Final = re.compile(
    r"(?:el)?if target \. type (?P<how>==|!=|in|not in) (?P<names>'\w+'|[(\[] '\w+'(?: , '\w+')*(?: ,)? [)\]])"
)


def names_in(node: nodes.Node) -> list[nodes.Name]:
    """The names in a part of a tree, itself among them.

    Example:
        >>> [name.name for name in names_in(tree_of("{{ a + b.c }}"))]
        ['a', 'b']
    """
    return [node] if isinstance(node, nodes.Name) else [*node.find_all(nodes.Name)]


_DEEPEST: Final = 150
"""Levels of a tree: what walks one calls itself for each."""


class Piece(NamedTuple):
    """A part of a text: what stands between two tags, or a tag.

    Attributes:
        kind: ``data``, ``{{`` or ``{%``.
        text: what Jinja hands on of data; of a tag, its tokens with one space between them.
        tokens: of a tag: ``(type, value)`` as Jinja's lexer calls them, without white space.
    """

    kind: str
    text: str
    tokens: tuple[tuple[str, str], ...] = ()

    @property
    def statement(self) -> str:
        """The first word of a ``{% %}``; empty for anything else."""
        return self.tokens[0][1] if self.kind == "{%" and self.tokens else ""


@lru_cache(maxsize=512)
def pieces(text: str) -> tuple[Piece, ...] | None:
    """A text as Jinja's lexer divides it, without comments; None where it refuses the text.

    White space that ``-`` tells Jinja to drop is gone, and what stands in ``raw`` is data.

    Example:
        >>> [piece.text for piece in pieces("a {#- b -#} {%- set  x = 'y' -%} {{ x }}")]
        ['a', "{% set x = 'y' %}", '{{ x }}']
    """
    if "{" not in text:
        return (Piece("data", text),) if text else ()
    found: list[Piece] = []
    inside: list[tuple[str, str]] | None = None
    kind = ""
    try:
        for _, token, value in _tokens(text):
            if token in _BEGINS:
                kind, inside = _BEGINS[token], []
            elif token in _ENDS:
                written = " ".join(v for _, v in inside or ())
                found.append(Piece(kind, f"{kind} {written} {_CLOSES[kind]}", tuple(inside or ())))
                inside = None
            elif inside is not None:
                if token != "whitespace":
                    inside.append((token, _in_one_quote(value) if token == "string" else value))
            elif token == "data" and value:
                if found and found[-1].kind == "data":
                    value = found.pop().text + value
                found.append(Piece("data", value))
    except TemplateSyntaxError:
        return None
    return None if inside is not None else tuple(found)


def _in_one_quote(string: str) -> str:
    """A string as it is written in single quotes, where it can be without another letter."""
    plain = "'" not in string[1:-1] and "\\" not in string
    return f"'{string[1:-1]}'" if plain else string


_BEGINS: Final = {"variable_begin": "{{", "block_begin": "{%"}
_ENDS: Final = frozenset({"variable_end", "block_end"})
_CLOSES: Final = {"{{": "}}", "{%": "%}"}

_TAG: Final = "\x01"
_DROPPED: Final = "\x02"
"""What stands for a tag, and for one that is dropped, while the SQL around it is read."""
_MARK: Final = re.compile("[\x01\x02]")
_SQL_PIECE: Final = re.compile(
    r"""(?P<kept>'[^']*'|"[^"]*"|`[^`]*`|/\*\+.*?\*/)"""
    r"""|(?P<blank>(?:\s|--[^\n]*|/\*(?!\+).*?\*/)+)|(?P<open>['"`]|/\*)""",
    re.S,
)
_UNSURE: Final = re.compile(r"""\\['"`]|\$\w*\$|'{3}|"{3}|\#|/\*!|/\*(?:(?!\*/).)*/\*""", re.S)
"""Where a string or a comment ends here is another thing for each engine."""
_SQL: Final = frozenset(
    """
    alter analyze begin call copy create delete drop execute explain from grant having insert join
    merge msck optimize qualify refresh replace revoke select set truncate update use vacuum where
    with
    """.split()
)
"""The words a statement of SQL, or a clause of one, begins with."""


def normal_pieces(text: str) -> list[str] | None:
    """The texts of `pieces` as SQL: without comments, each run of white space outside of literals as one.

    Tags that only name a relation in a comment (``-- depends_on: {{ ref('a') }}``) are empty. None where it is not
    sure where a string or a comment ends.
    """
    parts = pieces(text)
    if parts is None:
        return None
    tags = [part for part in parts if part.kind != "data"]
    plain = "".join(part.text if part.kind == "data" else _TAG for part in parts)
    if plain.count(_TAG) != len(tags) or _UNSURE.search(plain):
        return None
    out: list[str] = []
    at = seen = 0
    for found in _SQL_PIECE.finditer(plain):
        before = plain[at : found.start()]
        within = found[0].count(_TAG)
        seen += before.count(_TAG) + within
        at = found.end()
        if found["open"]:
            return None  # a string that does not end
        if within and found["blank"]:
            inside = tags[seen - within : seen]
            if not all(_names_a_relation(tag) or _writes_nothing(tag) for tag in inside):
                return None  # a comment that Jinja may end
            kept_tags = "".join(_TAG if _writes_nothing(tag) else _DROPPED for tag in inside)
            out += (before, " ", kept_tags, " " if _TAG in kept_tags else "")
        else:
            out += (before, found["kept"] or " ")
    written = "".join((*out, plain[at:]))
    between, marks = iter(_MARK.split(written)), iter(_MARK.findall(written))
    normal: list[str] = []
    data = next(between)
    for part in parts:
        if part.kind == "data":
            normal.append(data)
        else:
            normal.append(part.text if next(marks) == _TAG else "")
            data = next(between)
    return normal


def _names_a_relation(tag: Piece) -> bool:
    """Whether a tag is a ``ref`` or ``source`` of literal names: what it gives has no line of its own."""
    words = [value for kind, value in tag.tokens if kind != "string"]
    arguments = words[2:] in ([")"], [",", ")"])
    return tag.kind == "{{" and words[:2] in (["ref", "("], ["source", "("]) and arguments


def _writes_nothing(tag: Piece) -> bool:
    """Whether a tag, wherever it stands, leaves nothing in the text, whatever it does otherwise."""
    sets = tag.statement == "set" and ("operator", "=") in tag.tokens
    return sets or tag.statement == "do" or _only_configures(tag)


@cache
def normalised(text: str) -> str:
    r"""SQL with Jinja without comments, every run of white space outside of literals as one.

    Inside of a tag the rules are Jinja's: ``--`` is no comment there, and white space means nothing. A text of
    which it is not sure where its strings and comments end comes back as it is.

    Example:
        >>> normalised("select a, -- the id\n   'x  y' {# note #}\nfrom t")
        "select a, 'x  y' from t"
        >>> normalised("{% set  x = 1 -- 2 %}  select '{{ x }}  y'")
        "{% set x = 1 - - 2 %} select '{{ x }}  y'"
    """
    normal = normal_pieces(text)
    return text if normal is None else "".join(normal).strip()


@kept(str)
def normalised_macro(text: str) -> str:
    """A macro's text for comparison: `normalised` where it writes a statement or a clause of SQL.

    What another macro writes may end up inside of a literal, so that its white space is data; what
    it gives back by ``return`` is not.
    """
    parts = pieces(text)
    if parts is None:
        return text
    words = " ".join(part.text for part in parts if part.kind == "data").split(None, 1)
    returns = any(token == ("name", "return") for part in parts for token in part.tokens)
    if words[0].lower() in _SQL if words else returns:
        return normalised(text)
    return "".join(part.text for part in parts)


def without_tags(text: str, instead: str) -> str:
    """The SQL with something else in place of each ``{{ }}``, and a space for each ``{% %}``, without comments.

    Example:
        >>> without_tags("delete from {{ this }} where a", "it")
        'delete from it where a'
    """
    parts = pieces(text)
    if parts is None:
        return text
    normal = normal_pieces(text) or [part.text for part in parts]
    kinds = {"{{": instead, "{%": " "}
    return "".join(
        kinds.get(p.kind, sql) if sql else "" for p, sql in zip(parts, normal, strict=True)
    )


OF_OTHER_RUNS: Final = frozenset(
    {"is_incremental", "should_full_refresh", "FULL_REFRESH", "full_refresh"}
)
"""Names by which a model tells its first run from the later ones."""


@lru_cache(maxsize=512)  # several questions are asked of one text after another
def branches(text: str) -> tuple[str, ...]:
    """What decides the SQL on the runs that were not compiled, empty where nothing does.

    That is every ``if`` and ``for`` that asks whether the model exists (by a variable that was set to the answer,
    too), whole, every ``{{ }}`` that asks it, and every other statement of Jinja outside of those, because it may
    set what they use. Where this cannot be told apart from the rest it is the whole text.

    Example:
        >>> branches("select 1 {% set new = is_incremental() %}{% if new %} where x {% endif %} -- why")
        ('{% set new = is_incremental ( ) %}', '{% if new %} where x {% endif %}')
        >>> branches("select {{ 1 }}")
        ()
    """
    if not any(name in text for name in OF_OTHER_RUNS):
        return ()
    parts, normal = pieces(text), normal_pieces(text)
    whole = (normalised(text),)
    if parts is None or (blocks := _asking(parts)) is None:
        return whole
    if not blocks:
        return ()
    if normal is None:
        return whole
    found: list[str] = []
    at = 0
    while at < len(parts):
        end = blocks.get(at, at)
        if at in blocks or parts[at].kind == "{%":
            found.append("".join(normal[at : end + 1]))
        at = end + 1
    return tuple(filter(None, found))


_CLAUSES: Final = frozenset(
    "cross distinct except from full group having inner intersect join lateral left limit on order over qualify right "
    "select union unpivot pivot where window with".split()
)
_SQL_WORD: Final = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|[a-z_]\w*|[()]", re.S | re.I
)


def place_of_branches(text: str) -> str:
    """Where `branches` stand among the clauses of a query: the words that begin one, and the brackets around them.

    The same filter in a CTE, or behind a window, is of other rows.

    Example:
        >>> place_of_branches("select max(a) from (select a from t {% if is_incremental() %}where a{% endif %}) as s")
        'select from ( select from {} )'
    """
    parts = pieces(text)
    blocks = _asking(parts) if parts is not None else None
    if parts is None or not blocks:
        return ""
    words: list[str] = []
    opened: list[int] = []
    at = 0
    while at < len(parts):
        if at in blocks:
            words.append("{}")
            at = blocks[at]
        elif parts[at].kind == "data":
            for word in map(str.lower, _SQL_WORD.findall(parts[at].text)):
                if word == "(":
                    opened.append(len(words))
                    words.append(word)
                elif word == ")":
                    start = opened.pop() if opened else 0
                    if start == len(words) - 1:  # of a call, in which no clause stands
                        words.pop()
                    else:
                        words.append(word)
                elif word in _CLAUSES:
                    words.append(word)
        at += 1
    return " ".join(words)


def outside_of_branches(text: str) -> str:
    """A text without every ``if`` and ``for`` that asks whether the model exists."""
    parts = pieces(text)
    blocks = _asking(parts) if parts is not None else None
    if parts is None or not blocks:
        return text
    left: list[str] = []
    at = 0
    while at < len(parts):
        end = blocks.get(at, at)
        if end == at:
            left.append(parts[at].text)
        at = end + 1
    return "".join(left)


def _asking(parts: tuple[Piece, ...]) -> dict[int, int] | None:
    """Where what asks whether the model exists begins and ends: a tag, or a whole ``if`` or ``for``.

    None where what depends on the answer cannot be told apart from the rest.
    """
    asking = set(OF_OTHER_RUNS)
    blocks: dict[int, int] = {}
    open_: list[tuple[int, bool]] = []

    def asks(part: Piece) -> bool:
        return not _only_configures(part) and any(
            value.strip("'\"") in asking
            for kind, value in part.tokens
            if kind in ("name", "string")
        )

    for at, part in enumerate(parts):
        word = part.statement
        of_this = part.kind != "data" and asks(part)
        if word in ("if", "for"):
            open_.append((at, of_this))
        elif word == "elif" and open_:
            open_[-1] = open_[-1][0], open_[-1][1] or of_this
        elif word in ("endif", "endfor") and open_:
            begin, counts = open_.pop()
            if counts:
                blocks = {b: e for b, e in blocks.items() if b < begin} | {begin: at}
        elif word == "do" or (word == "set" and ("operator", "=") in part.tokens):
            if of_this or any(counts for _, counts in open_):
                asking.update(_changed(part))
            if of_this:
                blocks[at] = at
        elif word in _OPENS_TEXT:
            # What it holds goes elsewhere, with or without an answer.
            if any(map(asks, parts)):
                return None
        elif of_this:
            if part.kind == "{%":
                return None
            blocks[at] = at
    return None if open_ and blocks else blocks


_OPENS_TEXT: Final = frozenset("macro call filter set endset block".split())
"""Statements of which the text that follows goes elsewhere."""


def _changed(part: Piece) -> set[str]:
    """The names that a ``set`` sets, and those of which a method may change what they hold."""
    tokens = part.tokens[1:]
    end = tokens.index(("operator", "=")) if ("operator", "=") in tokens else 0
    names = {value for _, value in tokens[:end]}
    names |= {one for (_, one), (_, then) in pairwise(tokens) if then == "."}
    return {name for name in names if name.isidentifier()}


def _only_configures(part: Piece) -> bool:
    """Whether a tag is a call of ``config`` alone, of which dbt says itself what it was given."""
    names = [("name", "config"), ("operator", "(")]
    tree = tree_of(part.text) if part.kind == "{{" and [*part.tokens[:2]] == names else None
    match tree:
        case nodes.Template(
            body=[nodes.Output(nodes=[nodes.Call(node=nodes.Name(name="config"))])]
        ):
            return True
    return False


def without_branches(text: str, taken: Collection[int]) -> str:
    """A text with what stands around its branches, and with those that are taken.

    Args:
        text: that Jinja can parse.
        taken: numbers of branches: each ``if``, ``elif`` and ``else`` of one begins the next, from 1.

    Example:
        >>> without_branches("a {% if x %}b{% elif y %}c{% else %}d{% endif %} e", [2])
        'a {% if x %}{% elif y %}c{% else %}{% endif %} e'
    """
    left: list[str] = []
    open_: list[
        tuple[str, bool]
    ] = []  # each `if` and `for`, and whether what stands around it counts
    number = 0
    counts = True
    for piece in pieces(text) or ():
        word = piece.statement
        if word in ("if", "for"):
            open_.append((word, counts))
        outer = open_[-1][1] if open_ else counts
        if word in ("if", "elif", "else") and open_[-1][0] == "if":
            number += 1
            counts = outer and number in taken
            left += [piece.text] * outer
        elif word in ("endif", "endfor"):
            counts = open_.pop()[1]
            left += [piece.text] * counts
        else:
            left += [piece.text] * counts
    return "".join(left)
