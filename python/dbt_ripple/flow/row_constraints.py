"""What is known of a relation's rows beyond its fingerprints, carried along while a query is linked.

Rule 14: a join to a side that has at most one match for each row is a *lookup*. A LEFT one leaves
the rows as they are; an INNER one keeps those with a match, which are all of them where the key is
not null and related. Either way the looked-up columns are functions of the row on the left: of what
is looked up, and by which condition. Rule 15: the structure of the row set (`containment`).

Guarantees: nothing is assumed that was not proved, by the query itself or by a test that `KnownConstraints` was
told of. Uniqueness is as `=` sees it: NULLs match nothing, and both sides must be of one type, for
a conversion can make two keys equal ('1' and '01' are one integer). What this module does not know
keeps its fingerprint and loses what was known about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from dbt_ripple.flow.containment import (
    Condition,
    CountAbove,
    GroupedRows,
    IsNull,
    OpaqueRows,
    OuterJoin,
    Rows,
    SemiJoin,
    Union,
    filtered,
    joined,
    sides,
)
from dbt_ripple.flow.fingerprint import digest, hashed, where
from dbt_ripple.flow.ir import INNER_JOINS, LITERAL_COLUMN, Expr, FromItem, LoweredExpr, Out, Ref
from dbt_ripple.flow.relation import Column, OutputColumn, Relation
from dbt_ripple.flow.scope import Env, relation_of


class Proof(NamedTuple):
    """Why something holds: by which tests, and in words."""

    tests: frozenset[str] = frozenset()
    words: str = ""


OF_ITSELF: Final = Proof()


class FactUse(NamedTuple):
    """One use of a fact: whose query uses it, what it states, and the tests that prove it."""

    reader: str
    words: str
    tests: frozenset[str]


class Unique(NamedTuple):
    """No two rows have the same values here; no columns: there is at most one row.

    ``nulls`` says that this holds of NULLs, too, which are one value then, as they are to GROUP BY.
    """

    columns: frozenset[bytes]
    proof: Proof
    nulls: bool = False


class Related(NamedTuple):
    """Each value that is not NULL is one of a column of another row set."""

    rows: bytes
    column: bytes
    proof: Proof


@dataclass(slots=True)
class Facts:
    """What is known of the rows of a relation; columns are fingerprints.

    Attributes:
        rows: their structure; its ``fp`` is ``N``.
        single: there is exactly one row.
        unique: sets of columns that are.
        not_null: columns without NULLs.
        related: columns whose values another row set has.
        absent: columns of a LEFT JOIN's right side that are NULL just where there is no match.
        numbered: columns that are a ``row_number()``.
        one_each: why each group is made of one row at most, where it is.
        empty: why there is no row, where there is none.
        values: the constants of which each value of a column that is not NULL is one, as these rows
            were taken by it.
        more: finds out more about what is unique, which takes its time.
    """

    rows: Rows
    single: bool = False
    unique: list[Unique] = field(default_factory=list)
    not_null: dict[bytes, Proof] = field(default_factory=dict)
    related: dict[bytes, list[Related]] = field(default_factory=dict)
    absent: dict[bytes, SemiJoin] = field(default_factory=dict)
    numbered: frozenset[bytes] = frozenset()
    one_each: Proof | None = None
    empty: Proof | None = None
    values: dict[bytes, frozenset[bytes]] = field(default_factory=dict)
    more: Callable[[], Iterable[Unique]] | None = None

    def copy(self) -> Facts:
        """The same, to be changed."""
        return Facts(
            self.rows,
            self.single,
            list(self.unique),
            dict(self.not_null),
            dict(self.related),
            dict(self.absent),
            self.numbered,
            self.one_each,
            self.empty,
            dict(self.values),
            self.more,
        )

    def unique_on(self, columns: frozenset[bytes], nulls: bool = False) -> Unique | None:
        """What shows that no two rows agree on these columns (``nulls``: on NULLs neither)."""
        for unique in self.unique:
            if unique.columns <= columns:
                if unique.nulls or not nulls:
                    return unique
                if unique.columns <= self.not_null.keys():
                    proofs = [unique.proof, *(self.not_null[c] for c in unique.columns)]
                    return Unique(unique.columns, _both(proofs), True)
        if self.more is not None and columns:
            more, self.more = self.more, None
            self.unique.extend(more())
            return self.unique_on(columns, nulls)
        return None


_NULL: Final = digest(b"Null")
_ROW_NUMBER: Final = digest(b"RowNumber")
_COUNT_ALL: Final = digest(b"count(*)")
_NUMBERS: Final = {digest(b"number", str(n).encode()): n for n in range(100)}
_SOME: Final = frozenset(
    digest(b"string", text.encode())
    for text in ("_dbt_utils_surrogate_key_null_", *"-_|:,/. ", *"0123456789")
)
"""Texts that stand in keys made of columns."""
_KEEPS: Final = {"LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}
_SEMI: Final = frozenset({"SEMI", "LEFT SEMI"})
_ANTI: Final = frozenset({"ANTI", "LEFT ANTI"})

_FAMILIES: Final = {
    **dict.fromkeys(
        (
            "tinyint smallint mediumint int integer bigint long short byte int2 int4 int8 int64 "
            "hugeint utinyint usmallint uinteger ubigint"
        ).split(),
        "integer",
    ),
    **dict.fromkeys(("string", "text", "varchar", "character varying", "nvarchar"), "text"),
    **{name: name for name in ("date", "boolean", "uuid")},
    "bool": "boolean",
}
"""Types that compare with one another without a loss, by the name of their family."""
_CAST_TYPES: Final = {
    digest(b"type", f"DType.{name.upper()}".encode(), b"None"): family
    for name, family in _FAMILIES.items()
}


TEXT_OF_A_SOURCE: Final = "text of a source"
"""The family of text that may compare by a collation that no catalog shows: two columns of it need not be of one type."""

_AS_TEXT_THE_SAME: Final = frozenset(
    {"boolean", "date", "integer", "text", TEXT_OF_A_SOURCE, "uuid"}
)
"""Families of which two values that differ are two texts, and one value is one."""

_TEXT: Final = frozenset(
    (
        b"Initcap Left Lower MD5 Pad RegexpExtract RegexpReplace Replace Right SHA SHA2 SplitPart "
        b"Substring Translate Trim Upper"
    ).split()
)
"""Functions that give text (some of them bytes, of bytes), whatever they are called on."""
_HASHES: Final = frozenset({b"MD5", b"SHA", b"SHA2"})
"""Those of them of which the text has no collation, whatever theirs has. (A cast keeps it: executed on DuckDB.)"""


def type_family(name: str | None) -> str | None:
    """Types within a family compare without a loss; None where that is not known of a type.

    Example:
        >>> type_family("BIGINT") == type_family("int"), type_family("varchar(10)")
        (True, 'text')
        >>> type_family("double") is None, type_family("decimal(10, 2)")
        (True, 'decimal(10,2)')
    """
    if not name or "collate" in name.lower():
        return None
    plain = "".join(name.lower().split())
    base = " ".join(name.lower().partition("(")[0].split())
    family = _FAMILIES.get(base)
    if family == "text":
        return family
    if base.startswith("timestamp"):
        return plain
    if base in ("decimal", "numeric"):
        return plain if "(" in plain else None
    return family if base == name.lower().strip() else None


class KnownConstraints:
    """What is known while queries are linked: types by fingerprint, and the facts that were used.

    Attributes:
        types: the family of types of a column, by its ``V``; None where two were given.
        steps: the facts used since the list was last taken away (`graph.linking.fact_mode` does, per query).
        reader: whose query is being linked.
        named: what a joined relation is called in words.
        collates: whether any query so far has a COLLATE.
        looks_up: whether a join with at most one match for each row is taken for a lookup.
        is_stored: whether the rows are stored, so that what DISTINCT alone has evaluated fails where it stands.
        literals: the constants of the queries, each by its fingerprint: as text in quotes, or as a
            number. What else a query holds is among neither.
        values: of a column, by its ``V``, the constants of which each of its values that is not NULL
            is one: by the way it is made, whatever the rows are. They are all text, or all numbers.
    """

    def __init__(self, named: Callable[[str], str] = str) -> None:
        self.types: dict[bytes, str | None] = {}
        self.steps: dict[FactUse, None] = {}
        self.reader = ""
        self.named = named
        self.counts: dict[bytes, tuple[bytes, bytes, bool]] = {}
        self.collates = False
        self.looks_up = True
        self.is_stored = False
        self.literals: dict[bytes, str] = dict.fromkeys(_NUMBERS, "number")
        self.values: dict[bytes, frozenset[bytes]] = {}

    def spelled(self, sql: str) -> None:
        """Note the constants that a query spells.

        It may find too many, as in comments: a fingerprint is that of one constant, wherever it is.
        """
        for text in _QUOTED.findall(sql):
            text = text.replace("''", "'")
            self.literals[digest(b"string", text.encode("utf-8", "surrogatepass"))] = "text"
        for number in _INTEGER.findall(sql):
            self.literals[digest(b"number", number.encode())] = "number"

    def loaded(self, column: bytes, values: Iterable[str]) -> None:
        """Note the texts that a column of a seed holds."""
        texts = [digest(b"string", text.encode("utf-8", "surrogatepass")) for text in values]
        self.literals.update(dict.fromkeys(texts, "text"))
        self.values[column] = frozenset(texts)

    def values_of(self, env: Env, e: Expr, facts: Facts | None) -> frozenset[bytes] | None:
        """The constants of which each value of an expression that is not NULL is one.

        In rows of which ``facts`` are known; None stands for any rows.
        """
        if type(e) is int:
            return self.values_at(env.ref(e)[0], facts)
        if type(e) is bytes:
            return self.values_at(e)
        if type(e) is not list:
            return None
        if (chosen := _chosen(e)) is not None:
            return self.one_of(self.values_of(env, piece, facts) for piece in chosen)
        return None

    def values_at(self, fp: bytes, facts: Facts | None = None) -> frozenset[bytes] | None:
        """Likewise, of what has this fingerprint in rows of which that is known."""
        if fp == _NULL:
            return frozenset()
        if fp in self.literals:
            return frozenset({fp})
        taken = facts.values.get(fp) if facts is not None else None
        return self.values.get(fp) if taken is None else taken

    def taken(self, env: Env, e: Expr) -> None:
        """Note of a column that rows were taken by its values, of a list or one: it has no others.

        Only where its type is that of the constants, or they could be other values once they are
        cast.
        """
        if type(e) is not list or len(e) < 5 or type(e[2]) is not int:
            return
        listed = e[4:] if e[0] == b"In" and e[1:4:2] == _A_LIST else e[4:] * (e[0] == b"EQ")
        column = env.ref(e[2])[0]
        kinds = {self.literals.get(_constant(item), "") for item in listed}
        if kinds and kinds == {_KIND_OF.get(self.types.get(column) or "")}:
            env.facts.values[column] = frozenset(listed)

    def one_of(self, several: Iterable[frozenset[bytes] | None]) -> frozenset[bytes] | None:
        """The values of what is one of several things; None where these are not of one kind."""
        literals: set[bytes] = set()
        for values in several:
            if values is None:
                return None
            literals |= values
        kinds = {self.literals[value] for value in literals}
        return frozenset(literals) if len(kinds) < 2 else None

    def typed(self, column: bytes, family: str | None) -> None:
        """Note the type of a column."""
        family_before = self.types.setdefault(column, family)
        if family_before != family:
            self.types[column] = None

    def of(self, relation: Relation) -> Facts:
        """What is known of a relation, to be changed in a scope."""
        facts = relation.facts
        return facts.copy() if facts is not None else Facts(OpaqueRows(relation.rows.fp))

    def used(self, words: str, *proofs: Proof) -> None:
        """Note a fact that was used."""
        tests = frozenset[str]().union(*(p.tests for p in proofs))
        self.steps[FactUse(self.reader, words, tests)] = None

    # -- FROM --

    def join(
        self,
        env: Env,
        item: FromItem,
        on: Sequence[Column],
        left: Facts,
        right: Facts,
        side: Sequence[int],
        members: Sequence[int],
        token: bytes,
        n: bytes,
    ) -> tuple[Facts, bool]:
        """What is known of a join, and whether it is a lookup.

        Args:
            env: the scope; columns of the right side are wrapped in ``token`` already, and come to
                be wrapped in what is looked up where this is a lookup.
            item: the step.
            on: its conditions.
            left: what is known of the left side. May be changed.
            right: what is known of the right side, in columns without the token.
            side: the sources of the right side.
            members: those of the left.
            token: what the columns of the right side are wrapped in.
            n: ``N`` of the join where it is none.
        """
        keys = frozenset(fp for fp, _ in on)
        kind = item.kind
        self.wrap_values(env, side)
        if kind in _SEMI or kind in _ANTI:
            match = SemiJoin(right.rows, keys, kind in _ANTI)
            left.rows = filtered(left.rows, n, _match_key(match), match)
            left.single = False
            return left, False
        if kind == "LATERAL":
            return _fanned(left, joined(left.rows, right.rows, n, token, keys)), False
        if kind not in INNER_JOINS and kind not in _KEEPS:
            return Facts(OpaqueRows(n)), False
        pairs = self.equalities(env, item, side, members)
        if right.more is not None and not all(p.one_type for p in pairs):
            # What finds out what is unique finds types, too.
            right.unique_on(frozenset(p.right for p in pairs))
            pairs = self.equalities(env, item, side, members)
        if kind in INNER_JOINS or kind == "LEFT":
            same = frozenset(p.right for p in pairs if p.one_type)
            unique = Unique(frozenset(), OF_ITSELF) if right.single else right.unique_on(same)
            if unique is not None and self.looks_up:
                return self.lookup(env, item, left, right, side, keys, pairs, unique), True
        if kind in INNER_JOINS:
            facts = _fanned(left, joined(left.rows, right.rows, n, token, keys))
            for column, proof in right.not_null.items():
                facts.not_null[_wrapped(token, column)] = proof
            return facts, False
        keeps_left, keeps_right = _KEEPS[kind]
        rows = OuterJoin(n, left.rows, right.rows, keys, token, keeps_left, keeps_right)
        if keeps_right:
            return Facts(rows), False
        return _fanned(left, rows), False

    def lookup(
        self,
        env: Env,
        item: FromItem,
        left: Facts,
        right: Facts,
        side: Sequence[int],
        on: frozenset[bytes],
        pairs: list[_Pair],
        unique: Unique,
    ) -> Facts:
        """A join where no row on the left has more than one match (rule 14)."""
        source = env.sources[side[0]] if len(side) == 1 else None
        name = self.named(getattr(source.rel, "key", "") or source.alias or "") if source else ""
        columns = [p.name for p in pairs if p.right in unique.columns]
        words = f"{self.reader} keeps its rows: {name or 'what it joins'} "
        if columns:
            words += f"is unique on {', '.join(columns)}"
        else:
            words += "has one row" if right.single else "has at most one row"
        if unique.proof.words:
            words += f", {unique.proof.words}"
        proofs = [unique.proof]
        inside = digest(b"lookup", right.rows.fp, *sorted(on))
        for i in side:
            relation = env.relations[i]
            for column in relation.fps if relation is not None else ():
                fp = column
                for w in env.wraps[i][:-1]:
                    fp = _wrapped(w, fp)
                if column in self.types:
                    self.typed(_wrapped(inside, fp), self.types[column])
            env.wraps[i] = (*env.wraps[i][:-1], inside)
        env.cache = [None] * len(env.refs)
        self.wrap_values(env, side)
        match = _match(right.rows, on, pairs)
        if item.kind == "LEFT":
            for pair in pairs:
                left.absent[_wrapped(inside, pair.right)] = match
        else:
            match_proofs = None
            if len(pairs) == 1 and len(on) == 1 and pairs[0].one_type:
                match_proofs = _all_match(left, match)
            if match_proofs is not None:
                proofs += match_proofs
                words += f", and every {pairs[0].name} has its match"
                words += "".join(f", {p.words}" for p in match_proofs if p.words)
            elif not right.single or on:
                key = _match_key(match)
                n = where(left.rows.fp, key)
                left.rows = filtered(left.rows, n, key, match)
                left.single = False
            for column, proof in right.not_null.items():
                left.not_null[_wrapped(inside, column)] = proof
        self.used(words, *proofs)
        return left

    def wrap_values(self, env: Env, side: Sequence[int]) -> None:
        """Take over what is known of the values of a joined side: a join only adds NULLs."""
        for i in side if self.values or self.literals else ():
            relation = env.relations[i]
            for fp in relation.fps if relation is not None else ():
                values = self.values_at(fp)
                if values is not None:
                    for w in env.wraps[i]:
                        fp = _wrapped(w, fp)
                    self.values[fp] = values

    def equalities(
        self, env: Env, item: FromItem, side: Sequence[int], members: Sequence[int]
    ) -> list[_Pair]:
        """The conditions that equate a column of the right side with something on the left."""
        pairs = []
        for x in item.conds if not item.natural else ():
            e = x.e
            if type(e) is not list or e[0] != b"EQ" or len(e) != 5 or x.subs:
                continue
            for left, right in ((e[2], e[4]), (e[4], e[2])):
                source = _source_of(env, right) if type(right) is int else -1
                if source not in side or not _on_left(env, left, members):
                    continue
                pairs.append(self._pair(env, source, env.refs[right].key, left, members))
                break
        for key in item.using:
            owners = [
                i for i in members if env.visible[i] and env.listed_column(i, key) is not None
            ]
            right = [i for i in side if env.listed_column(i, key) is not None]
            if len(owners) == 1 and len(right) == 1:
                column = env.listed_column(owners[0], key)
                assert column is not None
                raw = _raw(env, owners[0], key)
                pairs.append(self._paired(env, right[0], key, column[0], raw, None))
        return pairs

    def _pair(self, env: Env, source: int, key: str, left: Expr, members: Sequence[int]) -> _Pair:
        raw = None
        family = None
        if type(left) is int:
            owner = _source_of(env, left)
            raw = _raw(env, owner, env.refs[left].key) if owner in members else None
        else:
            family = self.family(env, left)
        return self._paired(env, source, key, env.fp(left), raw, family)

    def family(self, env: Env, e: Expr) -> str | None:
        """The family of an expression's type; None where it cannot be told."""
        if type(e) is int:
            return self.types.get(env.ref(e)[0])
        if type(e) is not list:
            return _FAMILY_OF.get(self.literals.get(_constant(e), ""))
        if e[0] in _TEXT:
            return self.text_family(env, e)
        if e[0] in (b"Cast", b"TryCast") and len(e) == 5 and type(e[4]) is bytes:
            family = _CAST_TYPES.get(e[4])
            return self.text_family(env, e) if family == "text" else family
        # What is one of several things of one type is of that type; a NULL among them is of any.
        families = {self.family(env, piece) for piece in _chosen(e) or () if piece != _NULL}
        return families.pop() if len(families) == 1 else None

    def text_family(self, env: Env, e: Expr) -> str | None:
        """The family of a text; None where it may be equal to other texts than its letters: it came by COLLATE."""
        family = "text"
        stack = [e]
        while stack:
            piece = stack.pop()
            if type(piece) is int:
                known = self.types.get(env.ref(piece)[0], "")
                if self.collates and known is None:
                    return None
                if known == TEXT_OF_A_SOURCE:
                    family = TEXT_OF_A_SOURCE
            elif type(piece) is list:
                if piece[0] == b"Collate" or (piece[0] == "Q" and self.collates):
                    return None
                if piece[0] == "Q" or piece[0] in _HASHES:
                    continue
                stack.extend(piece)
        return family

    def _paired(
        self, env: Env, source: int, key: str, left: bytes, raw: bytes | None, family: str | None
    ) -> _Pair:
        right = _raw(env, source, key)
        family = family or (self.types.get(raw) if raw is not None else None)
        their_family = self.types.get(right)
        fp = right
        for w in env.wraps[source][:-1]:
            fp = _wrapped(w, fp)
        one_type = raw == right or (
            their_family is not None and their_family == family and family != TEXT_OF_A_SOURCE
        )
        return _Pair(key, left, fp, one_type)

    # -- the rest of a SELECT --

    def where(self, env: Env, x: LoweredExpr, fp: bytes, n: bytes) -> None:
        """A condition that rows have to meet; ``n`` is ``N`` of those that do."""
        facts = env.facts
        facts.single = False
        key = fp
        condition: Condition = None
        e = x.e
        self.taken(env, e)
        negated = type(e) is list and e[0] == b"Not" and len(e) == 3
        test = e[2] if negated else e
        if type(test) is list and test[0] == b"Is" and len(test) == 5:
            if type(test[2]) is int and test[4] == _NULL:
                column = env.ref(test[2])[0]
                if negated:
                    facts.not_null.setdefault(column, OF_ITSELF)
                match = facts.absent.get(column)
                if not negated and (never := facts.not_null.get(column)) is not None:
                    self.nothing(facts, "no value is NULL", never)
                if match is None:
                    condition = IsNull(column, negated)
                else:  # what was looked up is not there, or is
                    condition = replace(match, negated=not negated)
                    key = _match_key(condition)
                    match_proofs = None if negated else _all_match(facts, match)
                    if match_proofs is not None:
                        self.nothing(facts, "every value has its match", *match_proofs)
                facts.rows = filtered(facts.rows, n, key, condition)
                return
        elif negated and type(test) is list and test[0] == b"In" and test[1:4:2] == _A_LIST:
            values = self.values_of(env, test[2], facts)
            if values is not None and values.issubset(_constant(item) for item in test[4:]):
                self.nothing(facts, "its values are all in the list", OF_ITSELF)
        elif type(e) is list and e[0] in (b"GT", b"GTE") and len(e) == 5:
            more = self.more_than(env, e)
            if more is not None:
                key, condition = more
                if facts.one_each is not None and more[1].number > 0:
                    self.nothing(facts, "its rows are unique there", facts.one_each)
        elif type(e) is list and e[0] in (b"EQ", b"LTE") and len(e) == 5:
            number = _numbering(e[2])
            column = env.fp(e[2]) if number or type(e[2]) is int else b""
            if _NUMBERS.get(_constant(e[4])) == 1:
                if number:
                    facts.unique.append(Unique(frozenset(map(env.fp, number[0])), _FIRST, True))
                elif column in facts.numbered:
                    facts.unique += [
                        Unique(u.columns - {column}, _FIRST, u.nulls)
                        for u in facts.unique
                        if column in u.columns
                    ]
        facts.rows = filtered(facts.rows, n, key, condition)

    def more_than(self, env: Env, e: Expr) -> tuple[bytes, CountAbove] | None:
        """``count(...) > n`` of a group: its key does not hold which rows were counted."""
        number = _NUMBERS.get(_constant(e[4]))
        _, first = sides(env.facts.rows)[0]
        if number is None or not isinstance(first, GroupedRows):
            return None
        if type(e[2]) is int:
            counted = self.counts.get(env.ref(e[2])[0])
            if counted is None or counted[0] != first.fp:
                return None
            _, bare, rows = counted
        else:
            count_of_rows = _counting(env, e[2])
            if count_of_rows is None:
                return None
            bare, rows = count_of_rows
        least = number if e[0] == b"GT" else number - 1
        return digest(b"more than", str(least).encode(), bare), CountAbove(least, rows)

    def generate(self, env: Env, token: bytes, n: bytes) -> None:
        """Generators in the select list, which are the side ``token``: rows out of each row."""
        facts = env.facts
        if any(token == side for side, _ in sides(facts.rows)):  # nobody knows where they multiply
            self.unknown(env, n)
        else:
            env.facts = _fanned(facts, joined(facts.rows, OpaqueRows(token), n, token, frozenset()))

    def group(self, env: Env, keys: Sequence[bytes], sets: bool, n: bytes) -> None:
        """GROUP BY; rows that come out are unique on the keys."""
        facts = env.facts
        if sets:
            env.facts = Facts(OpaqueRows(n))
            return
        columns = frozenset(keys)
        env.facts = _grouped(facts, columns, n)
        if not columns:
            env.facts.single = True
            env.facts.empty = None
        unique = facts.unique_on(columns, nulls=True)
        if unique is not None:
            env.facts.one_each = unique.proof

    def outputs(
        self, env: Env, outs: Sequence[Out], fps: Sequence[bytes], wide: bool, collates: bool
    ) -> None:
        """Note which outputs are a ``row_number()``, a count, a cast, or a text under a collation."""
        facts = env.facts
        self.collates = self.collates or collates
        _, first = sides(facts.rows)[0]
        for i, out in enumerate(outs):
            if not isinstance(out, LoweredExpr) or type(out.e) is not list:
                continue
            e = out.e
            if (values := self.values_of(env, e, None)) is not None:
                self.values[env.fp(e)] = values
            elif (values := self.values_of(env, e, facts)) is not None:
                facts.values[env.fp(e)] = values
            number = _numbering(e)
            if e[0] == b"Coalesce" and any(_not_null(env, piece) for piece in e[1:]):
                facts.not_null[env.fp(e)] = _both(
                    proof for piece in e[1:] if (proof := _not_null(env, piece)) is not None
                )
            elif self.is_text(env, e):
                if (whole := self.whole(env, e)) is not None:
                    facts.not_null[env.fp(e)] = whole
                if e[0] == b"Cast" and type(e[2]) is int:
                    facts.unique += [
                        Unique(frozenset({env.fp(e)}), u.proof, u.nulls)
                        for u in facts.unique
                        if u.columns == frozenset({env.ref(e[2])[0]})
                    ]
            elif number is not None:
                fp = env.fp(e)
                partition = frozenset(map(env.fp, number[0]))
                facts.numbered |= {fp}
                facts.unique.append(Unique(partition | {fp}, OF_ITSELF, True))
            elif isinstance(first, GroupedRows) and (counted := _counting(env, e)) is not None:
                fp = env.fp(e)
                self.counts[fp] = (first.fp, *counted)
                facts.not_null[fp] = OF_ITSELF
            family = self.family(env, e)
            if self.collates and family is None and self.text_family(env, e) is None:
                self.typed(env.fp(e), None)
            elif family is not None:
                self.typed(env.fp(e) if wide else fps[i], family)

    def in_sets(self, env: Env, fps: Sequence[bytes], in_sets: Sequence[bytes]) -> None:
        """Outputs of ROLLUP and its like: the values and the types of the keys, and NULL."""
        for fp, of_set in zip(fps, in_sets, strict=True):
            if (values := self.values_at(fp, env.facts)) is not None:
                env.facts.values[of_set] = values
            self.typed(of_set, self.types.get(fp))

    def is_text(self, env: Env, e: Expr) -> bool:
        """Whether an expression is made as text is, of columns whose text tells their values.

        Then it is NULL only where what it is made of is: a JSON ``null``, say, is none of these.
        """
        if type(e) is int:
            return self.types.get(env.ref(e)[0]) in _AS_TEXT_THE_SAME
        if type(e) is not list:
            return type(e) is bytes and e in _SOME
        pieces = _pieces_of_text(e)
        if pieces is None or (e[0] in _CASTS and _CAST_TYPES.get(_constant(e[4])) != "text"):
            return False
        # What a cast makes of anything is text, or NULL.
        return e[0] in _CASTS or all(self.is_text(env, piece) for piece in pieces)

    def whole(self, env: Env, e: Expr) -> Proof | None:
        """Why such a text is never NULL; None where it may be."""
        if type(e) is int:
            return env.facts.not_null.get(env.ref(e)[0])
        if type(e) is not list:
            return OF_ITSELF
        pieces = _pieces_of_text(e) or []
        proofs = [self.whole(env, p) if self.is_text(env, p) else None for p in pieces]
        proofs_given = [proof for proof in proofs if proof is not None]
        enough = bool(proofs_given) if e[0] == b"Coalesce" else len(proofs_given) == len(proofs) > 0
        return _both(proofs_given) if enough else None

    def one_row(self, n: bytes) -> Facts:
        """A SELECT without FROM."""
        return Facts(OpaqueRows(n), single=True)

    def unknown(self, env: Env, n: bytes) -> None:
        """A clause that is not followed: what is known is lost."""
        env.facts = Facts(OpaqueRows(n))

    def nothing(self, facts: Facts, words: str, *proofs: Proof) -> None:
        """Note that no row can be there."""
        proof_words = ", ".join(dict.fromkeys(p.words for p in proofs if p.words))
        self.used(f"{words}, {proof_words}" if proof_words else words, *proofs)
        facts.empty = _both(proofs)

    def grouped_by_others(self, source: Facts, columns: Sequence[bytes], n: bytes) -> Facts:
        """PIVOT: one row for each combination of the columns it does not use."""
        return _grouped(source, frozenset(columns), n) if columns else Facts(OpaqueRows(n))

    def cut(self, env: Env, n: bytes, one_of: Sequence[bytes] = ()) -> None:
        """LIMIT, or DISTINCT ON (one row of each): some of the rows, which depends on all."""
        env.facts.single = False
        if one_of:
            env.facts.unique.append(Unique(frozenset(one_of), _ONE_OF_EACH, True))
        env.facts.rows = filtered(env.facts.rows, n, digest(b"cut", n))

    def are_distinct(self, env: Env, fps: Sequence[bytes]) -> bool:
        """Whether no two rows agree on these columns, so that DISTINCT leaves them as they are."""
        unique = env.facts.unique_on(frozenset(fps), nulls=True) if self.is_stored else None
        if unique is not None:
            words = f", {unique.proof.words}" if unique.proof.words else ""
            self.used(f"{self.reader} has no two rows that are the same{words}", unique.proof)
        return unique is not None

    def distinct(self, env: Env, fps: Sequence[bytes], complete: bool, n: bytes) -> None:
        """DISTINCT over these columns; ``complete`` says that they are all."""
        single = env.facts.single
        env.facts = (
            _grouped(env.facts, frozenset(fps), n) if complete and fps else Facts(OpaqueRows(n))
        )
        env.facts.single = single

    def combined(
        self,
        left: Relation,
        right: Relation,
        op: str,
        pairs: Sequence[tuple[OutputColumn, Column | None]],
        result: Relation,
        complete: bool,
    ) -> Facts:
        """A set operation; ``complete`` says that it is positional and all columns are known."""
        of_left, of_right = self.of(left), self.of(right)
        n, fps = result.rows.fp, result.fps
        if not complete or len(left.columns) != len(right.columns) or not fps:
            return Facts(OpaqueRows(n))
        columns = frozenset(fps)
        for fp, (a, b) in zip(fps, pairs, strict=True):
            if b is not None and (family := self.types.get(a.fp)) is not None:
                self.typed(fp, family if self.types.get(b[0]) == family else None)
        taken: dict[bytes, frozenset[bytes]] = {}
        for fp, (a, b) in zip(fps, pairs, strict=True):
            if b is None:
                continue
            values = self.one_of((self.values_at(a.fp), self.values_at(b[0])))
            if values is not None:
                self.values[fp] = values
            of_both = self.one_of((self.values_at(a.fp, of_left), self.values_at(b[0], of_right)))
            if of_both is not None:
                taken[fp] = of_both
        if op.startswith("UNION"):
            parts: dict[bytes, tuple[bytes, bytes]] | None = {}
            for fp, (a, b) in zip(fps, pairs, strict=True):
                assert b is not None
                if parts is not None and parts.setdefault(fp, (a.fp, b[0])) != (a.fp, b[0]):
                    parts = None
            distinct = op == "UNION DISTINCT"
            if not distinct and op != "UNION ALL":
                return Facts(OpaqueRows(n))
            fp = digest(b"union", n) if distinct else n
            facts = Facts(Union(fp, of_left.rows, of_right.rows, parts), values=taken)
            for fp, (a, b) in zip(fps, pairs, strict=True):
                proofs = [of_left.not_null.get(a.fp), of_right.not_null.get(b[0] if b else b"")]
                if None not in proofs:
                    facts.not_null[fp] = _both(p for p in proofs if p is not None)
            return _grouped(facts, columns, n) if distinct else facts
        if op not in ("EXCEPT DISTINCT", "INTERSECT DISTINCT"):
            return Facts(OpaqueRows(n))
        # A row of the left side is there or not by its values and by what the right side holds.
        facts = _grouped(of_left, columns, digest(b"G", left.rows.fp, *sorted(columns)))
        key = digest(op.encode(), right.rows.fp, *left.fps, b"|", *right.fps)
        facts.rows = filtered(facts.rows, n, key)
        return facts


_FIRST: Final = Proof(frozenset(), "by its row_number() = 1")
_ITS_GROUPS: Final = Proof(frozenset(), "by its GROUP BY")
_ONE_OF_EACH: Final = Proof(frozenset(), "by its DISTINCT ON")


class _Pair(NamedTuple):
    """An equality of a join: the right side's column by name and fingerprint, and the left's."""

    name: str
    left: bytes
    right: bytes
    one_type: bool


def _wrapped(token: bytes, fp: bytes) -> bytes:
    """As `Env.wrap` does it."""
    return hashed(b"R\x00" + token + fp)


def _raw(env: Env, source: int, key: str) -> bytes:
    return relation_of(env, source).columns_by_key()[key][0]


def _source_of(env: Env, i: int) -> int:
    """The source of this scope that a reference means a known column of; -1 where none."""
    ref: Ref = env.refs[i]
    if ref.up or ref.source < -1:
        return -1
    if ref.source >= 0:
        if env.relations[ref.source] is None:
            return -1
        named = relation_of(env, ref.source)
        unambiguous = ref.key in named.columns_by_key() and ref.key not in named.duplicates
        return ref.source if unambiguous else -1
    if ref.key in env.merged:
        return -1
    owners = [
        j
        for j, relation in enumerate(env.relations)
        if relation is not None and env.visible[j] and relation.get(ref.key, ref.name) is not None
    ]
    if len(owners) != 1:
        return -1
    owner = relation_of(env, owners[0])
    unambiguous = ref.key in owner.columns_by_key() and ref.key not in owner.duplicates
    return owners[0] if unambiguous else -1


def _on_left(env: Env, e: Expr, members: Sequence[int]) -> bool:
    """Whether an expression is a function of the left side's row alone."""
    stack = [e]
    result = False
    while stack:
        piece = stack.pop()
        if type(piece) is int:
            if _source_of(env, piece) not in members:
                return False
            result = True
        elif type(piece) is list:
            if piece[0] in ("Q", "W", "A", "G", "U"):
                return False
            stack.extend(piece)
    return result


def _match(rows: Rows, on: frozenset[bytes], pairs: list[_Pair]) -> SemiJoin:
    if len(on) == 1 and len(pairs) == 1:
        return SemiJoin(rows, on, False, pairs[0].left, pairs[0].right)
    return SemiJoin(rows, on, False)


def _match_key(match: SemiJoin) -> bytes:
    tag = b"no match" if match.negated else b"match"
    return digest(tag, match.rows.fp, *sorted(match.on))


def _all_match(facts: Facts, match: SemiJoin) -> list[Proof] | None:
    """Why every row has a match, where it has."""
    never_null = facts.not_null.get(match.child)
    if never_null is None:
        return None
    for related in facts.related.get(match.child, ()):
        if related.rows == match.rows.fp and related.column == match.parent:
            return [never_null, related.proof]
    return None


def _fanned(facts: Facts, rows: Rows) -> Facts:
    """What still holds where a row may come out more than once, or not at all."""
    return Facts(
        rows,
        not_null=facts.not_null,
        related=facts.related,
        absent=facts.absent,
        empty=facts.empty,
        values=facts.values,
    )


def _grouped(facts: Facts, columns: frozenset[bytes], n: bytes) -> Facts:
    """One row for each combination of these columns."""
    unique = [Unique(columns, _ITS_GROUPS, True)] if columns else []
    return Facts(
        GroupedRows(n, facts.rows, columns),
        unique=unique + [u for u in facts.unique if u.columns <= columns],
        not_null={c: p for c, p in facts.not_null.items() if c in columns},
        related={c: r for c, r in facts.related.items() if c in columns},
        empty=facts.empty,
        values=facts.values,
    )


def _both(proofs: Iterable[Proof]) -> Proof:
    proofs = list(proofs)
    return Proof(frozenset[str]().union(*(p.tests for p in proofs)), proofs[0].words)


def _numbering(e: Expr) -> tuple[list[Expr]] | None:
    """The partition of a ``row_number()``, in a tuple; None where it is something else."""
    if type(e) is not list or e[0] != "W" or type(e[1]) is not list:
        return None
    pieces = e[1]
    if pieces[0] != b"Window" or pieces[1] != _ROW_NUMBER or pieces[2] != b"partition":
        return None
    if pieces[-1] != _NOTHING_MORE:
        return None
    partition = []
    for piece in pieces[3:-1]:
        if type(piece) is bytes and piece in (b"order", b"spec"):
            break
        partition.append(piece)
    return (partition,)


_NOTHING_MORE: Final = digest(b"{}")


def _counting(env: Env, e: Expr) -> tuple[bytes, bool] | None:
    """A count of a group, without the rows it ran over, and whether it counts all of them."""
    if type(e) is not list or e[0] != "A":
        return None
    if e[1] == _COUNT_ALL:
        return _COUNT_ALL, True
    if type(e[1]) is list and e[1][0] == b"Count":
        return env.fp(e[1]), False
    return None


def _not_null(env: Env, e: Expr) -> Proof | None:
    """Why an argument is never NULL, where that can be seen."""
    if type(e) is int:
        return env.facts.not_null.get(env.ref(e)[0])
    return OF_ITSELF if _constant(e) in _NUMBERS else None


def _pieces_of_text(e: list[Any]) -> list[Expr] | None:
    """What a text is made of by an expression that is NULL only where one of them is.

    COALESCE is NULL only where all of them are. None of other expressions.
    """
    if e[0] == "F" and type(e[1]) is bytes and e[1].startswith(b"DPipe"):
        return list(e[2:])
    if e[0] == b"Concat" and e[1] == b"expressions":
        end = next((i for i, piece in enumerate(e) if piece in (b"safe", b"coalesce")), len(e))
        return list(e[2:end])
    if e[0] == b"Coalesce" and e[1] == b"this" and e[3:4] in ([], [b"expressions"]):
        return [e[2], *e[4:]]
    if (e[0] in _CASTS and len(e) == 5) or (e[0] == b"MD5" and len(e) == 3):
        return [e[2]]
    return None


def _chosen(e: list[Any]) -> list[Expr] | None:
    """What an expression is one of, or NULL; None of other expressions."""
    tag = e[0]
    if tag == LITERAL_COLUMN:
        return [e[1]]
    if tag == b"Case":
        result = []
        place = 3 if e[1] == b"this" else 1
        while place < len(e):
            place += 2 if e[place] == b"when" else 1
            result.append(e[place])
            place += 1
        return result
    if tag == b"Coalesce" and e[1] == b"this" and e[3:4] in ([], [b"expressions"]):
        return [e[2], *e[4:]]
    if tag in (b"Nullif", b"Filter", b"Window", "A", "W"):
        return _TILES.get(e[1]) or [e[1]] if type(e[1]) is bytes else [e[1]]
    if tag in (b"IgnoreNulls", b"RespectNulls") and len(e) == 2:
        return [e[1]]
    alone = e[1:4:2] == [b"this"] and len(e) == 3
    if alone and (tag in _ONE_OF_ROWS or tag in (b"IgnoreNulls", b"RespectNulls")):
        return [e[2]]
    if tag in (b"ArgMax", b"ArgMin") and len(e) == 5 and e[1:4:2] == [b"this", b"expression"]:
        return [e[2]]
    return None


_ONE_OF_ROWS: Final = frozenset(
    b"AnyValue First FirstValue Lag Last LastValue Lead Max Min Mode".split()
)
"""Aggregates and functions of windows that give a value of one of the rows, where nothing else is
written: a LAG with a default has more arguments."""

_KIND_OF: Final = {"text": "text", TEXT_OF_A_SOURCE: "text", "integer": "number"}
"""Of a family of types: what its constants are."""
_FAMILY_OF: Final = {"text": "text", "number": "integer"}
_A_LIST: Final = [b"this", b"expressions"]
_QUOTED: Final = re.compile("'((?:[^']|'')*)'")
_INTEGER: Final = re.compile(r"(?<![\w.])\d{1,15}(?![\w.])")
_TILES: Final = {
    digest(b"Ntile", b"this", digest(b"number", str(most).encode())): [
        digest(b"number", str(n).encode()) for n in range(1, most + 1)
    ]
    for most in (2, 3, 4, 5, 8, 10, 12, 16, 20, 100)
}
"""What NTILE gives."""

_CASTS: Final = frozenset({b"Cast", b"TryCast"})


def _constant(e: Expr) -> bytes:
    return e if type(e) is bytes else b""
