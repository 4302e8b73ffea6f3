"""GROUP BY, DISTINCT ON and ORDER BY: keys, the positions they name, and how keys of grouping sets are spelled.

In the rows of a set that leaves out a key (of ROLLUP, CUBE and GROUPING SETS), the engine makes the key NULL, and
with it every expression that is this key. Engines decide that by spelling: for DuckDB ``len(s)`` and
``length(s)``, ``k > v`` and ``v < k``, ``k`` and ``t.k`` are different. Fingerprints and parse
trees do not distinguish all of these, so the text is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import TokenType as T
from sqlglot import exp

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import ALL_OUTPUTS, FILTER, GROUP_BY, SORT, LoweredExpr, Select, Star
from dbt_ripple.flow.lowering.clause_helpers import ClauseHelpers, hash_ordinal
from dbt_ripple.flow.lowering.parse_tree import argument_names, ordinal_of, verbatim, without_parens
from dbt_ripple.flow.lowering.scope import Scope

_SETS: Final = frozenset({T.ROLLUP, T.CUBE, T.GROUPING_SETS})
_OPENING: Final = frozenset({T.L_PAREN, T.L_BRACKET, T.L_BRACE})
_CLOSING: Final = frozenset({T.R_PAREN, T.R_BRACKET, T.R_BRACE})
_BEHIND_SELECT: Final = frozenset({T.FROM, T.WHERE, T.GROUP_BY, T.HAVING, T.QUALIFY})
_BEHIND_GROUP: Final = frozenset(
    {T.HAVING, T.QUALIFY, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH, T.SELECT}
)
_BETWEEN_QUERIES: Final = frozenset({T.UNION, T.EXCEPT, T.INTERSECT, T.SEMICOLON})

_Words = tuple[str, ...]


def spelled_alike(tokens: Sequence[Any], columns_too: bool) -> tuple[bytes, bytes]:
    """Which keys of grouping sets are spelled alike, and where in their SELECT they stand again.

    Args:
        tokens: of a statement.
        columns_too: whether two spellings of one column (`k` and `t.k`) are two keys, too.

    Returns:
        A digest of what is alike; and one of the spellings of the keys and of what stands beside
        GROUP BY, which is for keys that are one column.
    """
    clauses = []
    for i, token in enumerate(tokens):
        if token.token_type is T.GROUP_BY:
            query = _query_around(tokens, i)
            end = next((j for j in query if j > i and tokens[j].token_type in _BEHIND_GROUP), None)
            end = end or query[-1] + 1
            clause = tokens[i + 1 : end]
            if any(t.token_type in _SETS for t in clause):
                clauses.append(_one(tokens, query, clause, end, columns_too))
    alike, spellings = [], []
    for one, words in clauses:
        alike.append(one)
        spellings.append(words)
    return digest(*alike), digest(*spellings)


def _query_around(tokens: Sequence[Any], at: int) -> list[int]:
    """The places of a SELECT's own tokens, those in brackets left out, given one of them."""

    def outwards(step: int, opening: frozenset[Any], closing: frozenset[Any]) -> list[int]:
        places = []
        depth = 0
        i = at + step
        while 0 <= i < len(tokens):
            kind = tokens[i].token_type
            if kind in closing:
                if not depth:
                    break
                depth -= 1
            elif kind in opening:
                depth += 1
            elif not depth and kind in _BETWEEN_QUERIES:
                break
            elif not depth:
                places.append(i)
            i += step
        places.append(i - step)
        return places

    before = outwards(-1, _CLOSING, _OPENING)
    return sorted({*before, at, *outwards(1, _OPENING, _CLOSING)})


def _one(
    tokens: Sequence[Any], query: list[int], clause: Sequence[Any], end: int, columns_too: bool
) -> tuple[bytes, bytes]:
    """What `spelled_alike` says of one GROUP BY."""
    keys = _keys(clause)
    classes: dict[_Words, int] = {}
    key_classes = [
        classes.setdefault(words, len(classes))
        for words, _ in keys
        if columns_too or not _is_name(words)
    ]
    in_sets = [inside for _, inside in keys]
    order = in_sets if columns_too and len(set(in_sets)) > 1 else []
    start = next((i for i in query if tokens[i].token_type is T.SELECT), query[0])
    behind = (i for i in query if i > start and tokens[i].token_type in _BEHIND_SELECT)
    items = [*_split(tokens[start + 1 : next(behind)]), tokens[end : query[-1] + 1]]
    again = []
    for words, key in classes.items():
        if len(words) > 1 and not _is_name(words):
            for n, item in enumerate(items):
                here = _words(item)
                again += [
                    (key, n, at)
                    for at in range(len(here) - len(words) + 1)
                    if here[at : at + len(words)] == words
                ]
    beside = [_words(item) for item in items]
    return repr((key_classes, order, again)).encode(), repr((list(classes), beside)).encode()


def _keys(clause: Sequence[Any], inside: bool = False) -> list[tuple[_Words, bool]]:
    """The keys in a list of them, in order, and whether each is in a ROLLUP or its like."""
    keys = []
    for item in _split(clause):
        within = inside
        while item and item[0].token_type in _SETS:
            item = item[1:]
            within = True
        if len(item) > 1 and _in_brackets(item):
            keys += _keys(item[1:-1], within)
        elif item:
            keys.append((_words(item), within))
    return keys


def _split(tokens: Sequence[Any]) -> list[Sequence[Any]]:
    """What commas divide, except commas in brackets."""
    parts = []
    depth = first = 0
    for i, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if kind is T.COMMA and not depth:
            parts.append(tokens[first:i])
            first = i + 1
    return [*parts, tokens[first:]]


def _in_brackets(tokens: Sequence[Any]) -> bool:
    """Whether the bracket that opens first closes last."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if not depth:
            return i == len(tokens) - 1 and token.token_type is T.R_PAREN
    return False


def _words(tokens: Sequence[Any]) -> _Words:
    return tuple(repr(t.text) if t.token_type is T.STRING else str(t.text).lower() for t in tokens)


def _is_name(words: _Words) -> bool:
    """Whether a key is a column, or the position or alias of one."""
    return len(words) == 1 or set(words[1::2]) == {"."}


_GROUP_STRUCTURES: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)
ORDERING: Final = ("order", "sort", "cluster", "distribute")
_READ_OF_GROUP: Final = argument_names("expressions grouping_sets cube rollup totals all")
_READ_OF_ORDER: Final = argument_names("expressions")


def _positions(structure: Any) -> list[int]:
    """The bare integers of ROLLUP, CUBE and GROUPING SETS; those inside an expression are values."""
    positions = []
    for item in structure.expressions:
        if isinstance(item, (exp.Tuple, *_GROUP_STRUCTURES)):
            positions.extend(_positions(item))
        elif (ordinal := ordinal_of(without_parens(item))) is not None:
            positions.append(ordinal)
    return positions


class GroupAndOrder(ClauseHelpers):
    """GROUP BY, DISTINCT ON and ORDER BY."""

    def distinct_on(self, nodes: list[Any], select: Select) -> None:
        """DISTINCT ON: its keys, and the positions it names."""
        scope = self.scopes[-1]
        keys: list[LoweredExpr] = []
        ordinals: list[int] = []
        for node in nodes:
            key = without_parens(node)
            if (ordinal := self.ordinal(key)) is not None:
                ordinals.append(ordinal)
                continue
            if (ordinal := hash_ordinal(key)) is not None:
                ordinals.append(ordinal)
            bare = isinstance(key, exp.Column)
            scope.place = alias_resolution.DISTINCT_ON if bare else alias_resolution.DISTINCT_ON_IN
            keys.append(self.lower_alone(key, GROUP_BY))
        select.distinct_on, select.distinct_on_outs = keys, ordinals

    def grouping_of(self, node: exp.Group, select: Select, scope: Scope) -> None:
        """GROUP BY: its keys, the positions it names, and the structure of its sets."""
        self.hash_unread(node, _READ_OF_GROUP)
        select.group_all = bool(node.args.get("all"))
        if select.group_all and node.expressions:  # no engine's list of keys: ALL of their sets
            self.scopes[-1].extra.append(LoweredExpr(digest(b"group by all"), {}, {}))
        structures: list[Any] = []
        keys: list[LoweredExpr] = []
        ordinals: list[int] = []
        for key in node.expressions:
            key = without_parens(key)
            if isinstance(key, exp.Identifier):  # what sqlglot leaves of a pipe's alias
                key = exp.Column(this=key)
            bare = isinstance(key, (exp.Column, *_GROUP_STRUCTURES, exp.Tuple))
            scope.place = alias_resolution.GROUP if bare else alias_resolution.GROUP_IN
            if isinstance(key, _GROUP_STRUCTURES):
                structures.append(key)
            elif (ordinal := self.ordinal(key)) is not None:
                ordinals.append(ordinal)
            else:
                select.group_tag += self.named_again(key, ordinals, select, scope)
                keys.append(self.lower_alone(key, GROUP_BY))
        for name in ("grouping_sets", "cube", "rollup", "totals"):
            value = node.args.get(name)
            for structure in value if isinstance(value, list) else [value] if value else []:
                if isinstance(structure, exp.Expression) and structure.expressions:
                    structures.append(structure)
                else:
                    select.group_tag += name.encode()
        scope.place = alias_resolution.GROUP
        for structure in structures:
            ordinals.extend(_positions(structure))
            keys.append(self.lower_alone(structure, GROUP_BY))
            select.group_tag += b"*"
        if structures and node.args.get("all") is False:
            select.group_tag += b"distinct"
        if structures:
            alike, select.group_spelled = spelled_alike(self.tokens, self.dialect == "duckdb")
            select.group_tag += alike
            if len(set(select.keys)) < len(select.keys):
                # Of two items of one alias a key may be either, each spelled in its own way.
                words = (token.text.encode() for token in self.tokens)
                select.group_tag += digest(b"aliases", *words)
        select.group, select.group_outs = keys, ordinals

    def named_again(self, key: Any, ordinals: Sequence[int], select: Select, scope: Scope) -> bytes:
        """Marks an alias of an item that a position before it names, as in `group by 1, n`.

        DuckDB (2.0) then gives 42 wherever the select list reads `n`.
        """
        if not ordinals or self.dialect != "duckdb" or type(key) is not exp.Column or key.table:
            return b""
        name = self.fold(key.this)
        if any(type(out) is Star for out in select.outs):  # which moves the positions behind it
            is_named = name in scope.aliases
        else:
            is_named = name in {select.keys[i - 1] for i in ordinals if 0 < i <= len(select.keys)}
        return digest(b"named again", name.encode()) if is_named else b""

    def ordering(self, args: dict[str, Any], select: Select, scope: Scope) -> None:
        """ORDER BY and its like: which of them it is, expressions, and the positions it names."""
        order: list[LoweredExpr] = []
        order_outs: list[int] = []
        for name, clause in [(name, args[name]) for name in ORDERING if name in args]:
            if name != "order":  # SORT BY sorts within a partition, DISTRIBUTE BY does not sort
                order.append(LoweredExpr(digest(b"clause", name.encode()), {}, {}))
            self.hash_unread(clause, _READ_OF_ORDER)
            for item in clause.expressions:
                target = without_parens(item.this if isinstance(item, exp.Ordered) else item)
                sorted_by = target
                while isinstance(sorted_by, exp.Collate) and self.dialect == "duckdb":
                    sorted_by = without_parens(sorted_by.this)  # it is the name alone to DuckDB
                bare = isinstance(sorted_by, exp.Column)
                scope.place = alias_resolution.ORDER if bare else alias_resolution.ORDER_IN
                fill = item.args.get("with_fill")
                if fill is not None:  # it adds rows
                    scope.extra.append(self.lower_alone(fill, FILTER))
                ordinal = self.ordinal(target)
                flags = {k: v for k, v in item.args.items() if k != "this" and v}
                if ordinal is not None:
                    order_outs.append(ordinal)
                    order.append(
                        LoweredExpr(
                            digest(b"ordinal", str(ordinal).encode(), verbatim(flags)), {}, {}
                        )
                    )
                elif isinstance(target, exp.Var) and target.name.upper() == "ALL":
                    order.append(LoweredExpr(digest(b"order by all", verbatim(flags)), {}, {}))
                    order_outs.append(ALL_OUTPUTS)
                else:
                    if (ordinal := hash_ordinal(target)) is not None:
                        order_outs.append(ordinal)
                    order.append(self.lower_alone(item, SORT))
        select.order, select.order_outs = order, order_outs

    def order_by_items(self, order: exp.Order, node: Any) -> exp.Order:
        """ORDER BY behind a set operation: what reads like an item of a branch is its output.

        That is a position, or behind BY NAME the item's name.
        """
        items: dict[bytes, dict[str, Any]] = {}
        names: set[str] = set()
        ahead = [node]
        by_name = isinstance(node, exp.SetOperation) and bool(node.args.get("by_name"))
        while ahead:
            branch = ahead.pop()
            if isinstance(branch, exp.SetOperation):
                if bool(branch.args.get("by_name")) is by_name:
                    ahead += [branch.this, branch.expression]
            elif isinstance(branch, exp.Subquery):
                ahead.append(branch.this)
            elif isinstance(branch, exp.Select) and not branch.is_star:
                for i, item in enumerate(branch.expressions):
                    name = self.fold(item.alias_or_name)
                    names.add(name)
                    if by_name and not name:
                        continue
                    output = exp.column(name, quoted=True) if by_name else exp.Literal.number(i + 1)
                    items.setdefault(verbatim(item.unalias()).lower(), {})[output.name] = output
        order_keys: list[Any] = []
        for ordered in order.expressions:
            target = without_parens(ordered.this if isinstance(ordered, exp.Ordered) else ordered)
            named = isinstance(target, exp.Column) and self.fold(target.this) in names
            named = named or (ordinal_of(target) or hash_ordinal(target)) is not None
            outputs = {} if named else items.get(verbatim(target).lower(), {})
            for output in outputs.values():
                order_keys.append(
                    exp.Ordered(**{**ordered.args, "this": output})
                    if isinstance(ordered, exp.Ordered)
                    else output
                )
            if not outputs:
                order_keys.append(ordered)
        return exp.Order(**{**order.args, "expressions": order_keys})
