"""Edits of a query's tokens, and the search for the smallest pair that still shows a miss."""

from __future__ import annotations

import difflib
import random
import re
import time
from collections.abc import Callable
from typing import Final

TOKEN: Final = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | \s+ | (?:\b[eE])?'(?:[^']|'')*' | \$\w*\$[^$]*\$\w*\$ | "(?:[^"]|"")*" | \d+(?:\.\d+)?(?:e[+-]?\d+)? | \w+ | [<>=~!@#$^&|?:*%/+-]+ | .""",
    re.X | re.S,
)
GROUPS: Final = (
    ("asc", "desc"), ("first", "last"), ("and", "or"), ("true", "false", "null"), ("union", "except", "intersect"),
    ("left", "right", "full", "inner", "semi", "anti", "cross", "natural", "positional", "asof"),
    ("rows", "range", "groups"), ("preceding", "following"), ("distinct", "all"), ("any", "all"),
    ("where", "having", "qualify"), ("on", "where", "having"), ("=", "<", ">", "<=", ">=", "<>"),
    ("+", "-", "*", "%", "/"), ("rollup", "cube"), ("like", "ilike", "glob"), ("max", "min", "sum", "count", "avg"),
    ("row_number", "rank", "dense_rank"), ("first", "last", "any_value"), ("lead", "lag"), ("limit", "offset"),
    ("include", "exclude"), ("include", "exclude", "replace", "rename"), ("year", "month", "day"),
    ("list", "array_agg", "string_agg", "first"), ("order", "group", "partition"), ("exists", "not exists"),
    ("ignore", "respect"), ("->", "->>"), ("in", "not in"), ("between", "not between"), ("is", "is not"),
    ("ties", "group", "no others"), ("unbounded", "1"), ("materialized", "not materialized"),
    ("both", "leading", "trailing"), ("union", "union by name", "union all", "union all by name"), ("all", ""),
)  # fmt: skip
INSERTED: Final = (
    "distinct", "all", "not", "desc", "nulls first", "nulls last", "recursive", "- ", "where true", "limit 2",
    "order by 1", "order by all desc", "filter (where true)", "natural", "lateral", "::varchar", "null", ", 1", "+ 1",
    "ignore nulls", "exclude ties", "exclude current row", "collate nocase", "group by all", "qualify true",
    "having true", "using key (k)", "materialized", "by name", "on true", "asof", "with ordinality", "offset 1",
    "50%", "within group (order by 1)", "tablesample 100%", "as of", "is null", "[1]", ".x", "* 2", "distinct on (1)",
    "over ()", "is not null",
)  # fmt: skip
KINDS: Final = (
    "token deleted", "tokens deleted", "item dropped", "item doubled", "items swapped", "word replaced", "number",
    "string", "string's case", "name", "name's case", "word inserted", "names swapped", "parentheses emptied",
    "parentheses swapped", "clause moved",
)  # fmt: skip


def tokens_of(text: str) -> list[str]:
    """A query's tokens, without comments."""
    return [t for t in TOKEN.findall(text) if not t.isspace() and t[:2] not in ("--", "/*")]


def joined(tokens: list[str]) -> str:
    """Tokens as text again; operators in pieces stay whole."""
    out: list[str] = []
    for t in tokens:
        if out and (t in ".,()[]" or out[-1] in ".(["):
            if t == "(" and re.match(
                r"^(in|as|on|and|or|not|select|from|by|where|using|over|then|when|exists|all|any|join|values|filter|,|=|<|>|between|union|sets|name|else|group)$",
                out[-1],
                re.I,
            ):
                out.append(" ")
            out.append(t)
            continue
        if out:
            out.append(" ")
        out.append(t)
    return "".join(out)


def spans(tokens: list[str], opening: str = "([{", closing: str = ")]}") -> list[tuple[int, int]]:
    """Where brackets open and close."""
    stack: list[int] = []
    spans_of_brackets = []
    for i, t in enumerate(tokens):
        if t in opening:
            stack.append(i)
        elif t in closing and stack:
            spans_of_brackets.append((stack.pop(), i))
    return spans_of_brackets


def items(tokens: list[str]) -> list[list[tuple[int, int]]]:
    """Lists of two or more things between commas: where each starts and ends."""
    lists: list[list[tuple[int, int]]] = []
    stack: list[tuple[int, list[tuple[int, int]]]] = [(0, [])]
    stops = {
        "from",
        "where",
        "order",
        "group",
        "having",
        "limit",
        "union",
        "select",
        "by",
        "join",
        "window",
        "qualify",
        "distinct",
    }

    def close(end: int) -> None:
        start, item_spans = stack[-1]
        if item_spans:
            item_spans.append((start, end))
            lists.append(item_spans)

    for i, t in enumerate(tokens):
        if t in ("(", "[", "{"):
            stack.append((i + 1, []))
        elif t in (")", "]", "}"):
            close(i)
            if len(stack) > 1:
                stack.pop()
        elif t == ",":
            start, item_spans = stack[-1]
            item_spans.append((start, i))
            stack[-1] = (i + 1, item_spans)
        elif t.lower() in stops:
            close(i)
            stack[-1] = (i + 1, [])
    close(len(tokens))
    return lists


class TokenEdits:
    """Edits of tokens; it knows words, not what they mean."""

    def __init__(self, functions: list[str]) -> None:
        self.functions = functions
        self.function_names = set(functions)

    def edit(self, kind: str, text: str, rng: random.Random) -> str | None:
        tokens = tokens_of(text)
        made = self.made(kind, tokens, rng)
        return None if made is None or made == tokens else joined(made)

    def made(self, kind: str, tokens: list[str], rng: random.Random) -> list[str] | None:
        n = len(tokens)
        if kind == "token deleted":
            i = rng.randrange(n)
            return tokens[:i] + tokens[i + 1 :]
        if kind == "tokens deleted":
            i = rng.randrange(n)
            return tokens[:i] + tokens[i + rng.choice((2, 2, 3, 4, 5)) :]
        if kind in ("item dropped", "item doubled", "items swapped"):
            lists = items(tokens)
            if not lists:
                return None
            item_spans = rng.choice(lists)
            i = rng.randrange(len(item_spans))
            start, end = item_spans[i]
            if kind == "item dropped":
                return (
                    tokens[:start] + tokens[end + 1 :]
                    if i + 1 < len(item_spans)
                    else tokens[: start - 1] + tokens[end:]
                )
            if kind == "item doubled":
                return [*tokens[:end], ",", *tokens[start:end], *tokens[end:]]
            if i + 1 == len(item_spans):
                i -= 1
            (s, e), (s2, e2) = item_spans[i], item_spans[i + 1]
            return tokens[:s] + tokens[s2:e2] + tokens[e:s2] + tokens[s:e] + tokens[e2:]
        if kind == "word replaced":
            at = [
                i
                for i, t in enumerate(tokens)
                if any(t.lower() in g for g in GROUPS) or t in self.function_names
            ]
            if not at:
                return None
            i = rng.choice(at)
            word = tokens[i].lower()
            if word in self.function_names and rng.random() < 0.6:
                other = rng.choice(self.functions)
            else:
                groups = [g for g in GROUPS if word in g]
                if not groups:
                    return None
                other = rng.choice([w for w in rng.choice(groups) if w != word])
            return tokens[:i] + other.split() + tokens[i + 1 :]
        if kind in ("number", "string", "string's case"):
            want = str.isdigit if kind == "number" else (lambda t: t.startswith("'"))
            at = [i for i, t in enumerate(tokens) if want(t)]
            if not at:
                return None
            i = rng.choice(at)
            if kind == "number":
                other = str(rng.choice((0, 1, 2, 3, 4, 42)))
            elif kind == "string's case":
                other = tokens[i].swapcase()
            else:
                other = rng.choice(
                    ("'a'", "'1'", "'01'", "''", "'x'", "'b'", "'k'", "'day'", "'$.A'")
                )
            return [*tokens[:i], other, *tokens[i + 1 :]]
        names = [
            i
            for i, t in enumerate(tokens)
            if re.match(r'^["a-z]\w*"?$', t, re.I)
            and t.lower() not in WORDS
            and t not in self.function_names
        ]
        if kind in ("name", "name's case", "names swapped"):
            if len(names) < 2:
                return None
            i, j = rng.sample(names, 2)
            made = list(tokens)
            if kind == "name":
                made[i] = tokens[j]
            elif kind == "name's case":
                made[i] = tokens[i].swapcase()
            else:
                made[i], made[j] = tokens[j], tokens[i]
            return made
        if kind == "word inserted":
            i = rng.randrange(1, n + 1)
            return tokens[:i] + rng.choice(INSERTED).split() + tokens[i:]
        brackets = spans(tokens)
        if kind == "parentheses emptied":
            if not brackets:
                return None
            s, e = rng.choice(brackets)
            inner = tokens[s + 1 : e] if rng.random() < 0.3 else []
            return tokens[:s] + inner + tokens[e + 1 :] if inner else tokens[: s + 1] + tokens[e:]
        if kind == "parentheses swapped":
            if len(brackets) < 2:
                return None
            one, two = sorted(rng.sample(brackets, 2))
            if two[0] < one[1]:  # the inner one takes the place of the outer
                return tokens[: one[0]] + tokens[two[0] : two[1] + 1] + tokens[one[1] + 1 :]
            return (
                tokens[: one[0]] + tokens[two[0] : two[1] + 1] + tokens[one[1] + 1 : two[0]]
                + tokens[one[0] : one[1] + 1] + tokens[two[1] + 1 :]
            )  # fmt: skip
        # A clause moved: a word that starts one and all up to the next word of the kind.
        at = [
            i
            for i, t in enumerate(tokens)
            if t.lower() in ("where", "having", "qualify", "order", "limit", "on", "group")
        ]
        if len(at) < 2:
            return None
        i, j = sorted(rng.sample(at, 2))
        made = list(tokens)
        made[i], made[j] = tokens[j], tokens[i]
        return made


WORDS: Final = frozenset(
    """select from where group by having order limit offset join left right full inner semi anti cross natural on using
    as and or not in is null true false case when then else end distinct all union except intersect over partition rows
    range groups between preceding following unbounded current row exclude ties asc desc nulls first last lateral with
    recursive values cast exists any like ilike glob similar to filter within interval date timestamp window qualify
    sample tablesample repeatable pivot unpivot for columns replace rename key only fetch percent rollup cube grouping
    sets asof positional""".split()
)


def smallest(
    base: str, head: str, still: Callable[[str, str], bool], seconds: float = 15.0
) -> tuple[str, str]:
    """Cut from both queries what they share for as long as they still show what they showed."""
    one, two = tokens_of(base), tokens_of(head)
    if not still(joined(one), joined(two)):
        return base, head
    until = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < until:
        again = False
        matches = difflib.SequenceMatcher(None, one, two, autojunk=False).get_matching_blocks()
        where = {b.a + i: b.b + i for b in matches for i in range(b.size)}
        candidates: list[tuple[int, int]] = []
        for s, e in spans(one):
            candidates += [(s, e + 1), (s + 1, e)]
        for item_spans in items(one):
            for n, (s, e) in enumerate(item_spans):
                candidates.append((s, e + 1) if n + 1 < len(item_spans) else (s - 1, e))
        for size in (24, 16, 12, 8, 6, 5, 4, 3, 2, 1):
            candidates += [(i, i + size) for i in range(len(one) - size + 1)]
        candidates = sorted(set(candidates), key=lambda c: c[0] - c[1])
        for s, e in candidates:
            if e > len(one) or s >= e:
                continue
            there = [where[i] for i in range(s, e) if i in where]
            if len(there) < e - s:
                continue
            cut_one, gone = one[:s] + one[e:], set(there)
            cut_two = [t for i, t in enumerate(two) if i not in gone]
            if still(joined(cut_one), joined(cut_two)):
                one, two, again = cut_one, cut_two, True
                break
            if time.monotonic() > until:
                break
    return joined(one), joined(two)
