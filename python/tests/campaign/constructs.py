"""SQL that is easily misread: clauses few parsers know, names that hide names, order that is kept.

`Constructs` writes queries with them for a random project; `constructs_of` tells which a text has, so
that a campaign can count the edits made where each stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from random_project import Item, Relation


class Column(NamedTuple):
    """A column and its kind: ``i`` integer, ``t`` text, ``d`` date, ``b`` boolean, ``n`` decimal."""

    name: str
    kind: str


Query = tuple[str, list[Column]]

CONSTRUCTS: Final = {
    # What the lowering has to read.
    "ORDER BY ALL": r"order by all",
    "NULLS FIRST or LAST": r"nulls (first|last)",
    "recursive CTE": r"with recursive",
    "USING KEY": r"using key",
    "PIVOT with GROUP BY": r"\bpivot *\([^|]*? group by",
    "PIVOT as a statement": r"\bpivot \(select[^|]*? on \w+ ",
    "UNPIVOT": r"\bunpivot\b",
    "COLUMNS(...)": r"\bcolumns *\(",
    "function of COLUMNS": r"\w\(\s*columns *\(",
    "* LIKE": r"\* (like|ilike) ",
    "* RENAME": r"\* rename",
    "LIMIT in percent": r"limit \d+ ?(%|percent)",
    "sample with a seed": r"using sample|tablesample",
    "ASOF JOIN": r"\basof\b",
    "POSITIONAL JOIN": r"\bpositional\b",
    "LATERAL": r"\blateral\b",
    "UNION BY NAME": r"\bby name\b",
    "frame with EXCLUDE": r"\bexclude (ties|group|current row|no others)",
    "IGNORE NULLS": r"\bignore nulls\b",
    "named window": r"\bwindow \w+ as\b",
    "lambda": r"\blambda\b|->",
    "list comprehension": r"\bfor \w+ in \[",
    # What counts unless it is known to be harmless.
    "rare aggregate": r"\b(kahan_sum|favg|arg_max_null|arg_min_null|argmax|bitstring_agg|product|entropy|kurtosis|mad|histogram|bool_xor|geomean|weighted_avg|any_value|quantile_disc)\(",
    "rare row function": r"\b(levenshtein|jaccard|list_cosine\w*|format|bar|gcd|lcm|nfc_normalize|chr|soundex|printf)\(",
    "generate_subscripts": r"\bgenerate_subscripts\b",
    # Names.
    "HAVING and an alias": r"\bhaving (\w+ )?al_",
    "alias over a column": r" as (id|k1|k2)\b",
    "stored names": r"\b\w+_1\b.*as twice|as twice",
    "NATURAL JOIN": r"\bnatural\b",
    "USING": r"\busing *\(",
    "keys of a struct": r"\{'(?-i:[A-Z])",
    "a row as JSON": r"\bto_json\(",
    "struct.*": r"\bst_\d+\.\*",
    # What is proven, and order.
    "UNNEST in the select list": r"\bunnest\(",
    "UNNEST beside GROUP BY": r"\bunnest\([^|]*? group by",
    "DISTINCT ON an ordinal or alias": r"distinct on *\((1|al_\w+)\)",
    "order into list()": r"\blist\(",
    "ARRAY(subquery)": r"\barray *\(\s*select",
    "order into LIMIT through UNION ALL": r"order by[^|]*union all[^|]*limit",
    "GROUPING SETS": r"\b(rollup|cube|grouping sets) *\(",
    "QUALIFY": r"\bqualify\b",
}
"""Each construct and what its text looks like."""

_PATTERNS: Final = {name: re.compile(pattern, re.I | re.S) for name, pattern in CONSTRUCTS.items()}


def constructs_of(*texts: str | None) -> list[str]:
    """Which constructs stand in any of these queries."""
    one = " | ".join(" ".join(t.split()) for t in texts if t)
    return [name for name, pattern in _PATTERNS.items() if pattern.search(one)]


class Constructs:
    """Shapes of queries for `random_project.Maker`, on which it stands."""

    random: Any
    source: Callable[[], tuple[str, Item]]
    visible: Callable[[], list[Relation]]
    choose: Callable[[Any], Any]
    chance: Callable[[float], bool]
    name: Callable[[str], str]
    condition: Callable[..., str]
    expression: Callable[..., str]
    total_order: Callable[[Item, list[str]], str]
    qualified: Callable[[list[Item], str], list[str]]
    where: Callable[..., str]

    def construct(self) -> Query:
        """A query of one of the shapes below."""
        shape = self.choose(
            (
                self.ordered_by_all, self.recursion, self.recursion, self.pivot_of_groups, self.unpivoted,
                self.columns_form, self.columns_form, self.star_like, self.odd_limit, self.odd_join,
                self.lateral_join, self.by_name, self.odd_window, self.lists,
                self.rare_functions, self.rare_functions, self.subscripts, self.hidden_in_having,
                self.hidden_in_order, self.hidden_in_group, self.stored_names, self.natural_join,
                self.keys_as_data, self.struct_star, self.unnest_beside, self.distinct_on_alias,
                self.order_into_list, self.order_into_union, self.qualified_alias,
            )
        )  # fmt: skip
        made: Query = shape()
        return made

    # -- small pieces -------------------------------------------------------------------------------

    def ints(self, item: Item) -> list[str]:
        return self.qualified([item], "i") or ["1"]

    def texts(self, item: Item) -> list[str]:
        return self.qualified([item], "t") or ["'none'"]

    def nulls(self) -> str:
        return str(self.choose(("", " nulls first", " nulls last", " desc nulls first", " desc")))

    def keyed(self) -> tuple[str, Item, str, str]:
        """A relation and two of its integers."""
        text, item = self.source()
        return text, item, self.choose(self.ints(item)), self.choose(self.ints(item))

    # -- what has to be read ----------------------------------------------------------------------

    def ordered_by_all(self) -> Query:
        text, _item, one, two = self.keyed()
        a, b = self.name("o"), self.name("o")
        return (
            f"select {one} as {a}, {two} as {b} from {text} order by all{self.nulls()} "
            f"limit {self.choose((3, 6, 9))}",
            [Column(a, "i"), Column(b, "i")],
        )

    def recursion(self) -> Query:
        text, _item, one, two = self.keyed()
        n, m, r = self.name("n"), self.name("m"), self.name("walk")
        key = f" using key ({n})" if self.chance(0.6) else ""
        word = self.choose(("union", "union all")) if not key else "union"
        return (
            f"with recursive {r} ({n}, {m}){key} as (select {one}, min({two}) from {text} "
            f"where {one} is not null group by 1 {word} select {n} + 1, coalesce({m}, 0) + 2 from {r} "
            f"where {n} < {self.choose((3, 5, 7))}) select {n}, {m} from {r}",
            [Column(n, "i"), Column(m, "i")],
        )

    def pivot_of_groups(self) -> Query:
        text, item, one, two = self.keyed()
        word = self.choose(self.texts(item))
        g, v, w, p, q, x = (self.name(s) for s in ("g", "v", "w", "p", "p", "x"))
        narrow = f"(select {one} as {g}, {two} as {v}, {word} as {w} from {text})"
        if self.chance(0.5):
            function = self.choose(("max", "min", "count"))
            group = f" group by {g}" if self.chance(0.7) else ""
            kept = [Column(g, "i")]
            return (
                f"select {g}, {p}, {q} from {narrow} as {x} pivot ({function}({v}) for {w} in "
                f"('ash' as {p}, 'elm' as {q}){group})",
                [*kept, Column(p, "i"), Column(q, "i")],
            )
        return (
            f"select {g}, ash, elm from (pivot (select * from {narrow} as {x}) on {w} in ('ash', 'elm') "
            f"using {self.choose(('max', 'min', 'count'))}({v}) group by {g}) as {self.name('x')}",
            [Column(g, "i"), Column("ash", "i"), Column("elm", "i")],
        )

    def unpivoted(self) -> Query:
        text, _item, one, two = self.keyed()
        a, b, v, w, x = (self.name(s) for s in ("a", "b", "v", "w", "x"))
        narrow = f"(select {one} as {a}, {two} as {b} from {text})"
        labelled = self.choose((a, f"{a} as 'First'", f"{a} as 'first'"))
        nulls = self.choose(("", " include nulls"))
        if self.chance(0.4):
            return (
                f"select {w}, {v} from (unpivot (select * from {narrow} as {x}) on {a}, {b} "
                f"into name {w} value {v}) as {self.name('x')}",
                [Column(w, "t"), Column(v, "i")],
            )
        return (
            f"select {w}, {v} from {narrow} as {x} unpivot{nulls} ({v} for {w} in ({labelled}, {b}))",
            [Column(w, "t"), Column(v, "i")],
        )

    def columns_form(self) -> Query:
        text, _item, one, two = self.keyed()
        a, b, c, x = (self.name(s) for s in ("va", "va", "wb", "x"))
        narrow = f"(select {one} as {a}, {two} as {b}, {one} as {c} from {text}) as {x}"
        way = self.random.randrange(5)
        if way == 0:
            return f"select columns('^va_') from {narrow}", [Column(a, "i"), Column(b, "i")]
        if way == 1:
            return (
                f"select columns(lambda c: c like 'va%') from {narrow}",
                [Column(a, "i"), Column(b, "i")],
            )
        if way == 2:
            made = {n: self.name("mx") for n in (a, b)}
            inner = f"select {c}, {self.choose(('max', 'min', 'count'))}(columns('^va_')) from {narrow} group by all"
            renamed = ", ".join([c, *made.values()])
            return (
                f"select * from ({inner}) as {self.name('x')} ({renamed})",
                [Column(c, "i"), *(Column(n, "i") for n in made.values())],
            )
        if way == 3:
            return (
                f"select coalesce(*columns('^va_')) as {(n := self.name('first'))}, {c} from {narrow}",
                [Column(n, "i"), Column(c, "i")],
            )
        return f"select columns(* exclude ({b})) from {narrow}", [Column(a, "i"), Column(c, "i")]

    def star_like(self) -> Query:
        text, _item, one, two = self.keyed()
        a, b, c, x = (self.name(s) for s in ("va", "va", "wb", "x"))
        narrow = f"(select {one} as {a}, {two} as {b}, {one} as {c} from {text}) as {x}"
        if self.chance(0.5):
            return f"select * like 'va%' from {narrow}", [Column(a, "i"), Column(b, "i")]
        renamed = self.name("renamed")
        return (
            f"select * rename ({a} as {renamed}) from {narrow}",
            [Column(renamed, "i"), Column(b, "i"), Column(c, "i")],
        )

    def odd_limit(self) -> Query:
        text, item = self.source()
        order = self.total_order(item, [self.choose(self.ints(item)) + self.nulls()])
        limit = self.choose(("limit 40%", "limit 70%", "offset 3", "limit 9 offset 2"))
        if self.chance(0.25):
            inner = self.name("x")
            return (
                f"select * from (select {item.alias}.* from {text} order by {order}) as {inner} "
                f"using sample 9 rows (reservoir, {self.choose((7, 42))})",
                item.columns,
            )
        return f"select {item.alias}.* from {text} order by {order} {limit}", item.columns

    def odd_join(self) -> Query:
        text, item, one, _two = self.keyed()
        other_text, other, key, more = self.keyed()
        a, b = self.name("left"), self.name("right")
        if self.chance(0.5):
            # The nearest of the other side: made one a key, so that it is decided.
            g, h = self.name("g"), self.name("h")
            nearest = f"(select {key} as {g}, max({more}) as {h} from {other_text} group by all)"
            kind = self.choose(("asof join", "asof left join"))
            return (
                f"select {one} as {a}, j.{h} as {b} from {text} {kind} {nearest} as j "
                f"on {one} {self.choose(('>=', '<='))} j.{g}",
                [Column(a, "i"), Column(b, "i")],
            )
        sides = (
            f"(select {item.alias}.* from {text} order by {self.total_order(item, [one])}) as p1",
            f"(select {other.alias}.* from {other_text} order by {self.total_order(other, [key])}) as p2",
        )
        mine, theirs = one.rpartition(".")[2], key.rpartition(".")[2]
        if "." not in one or "." not in key:
            return self.ordered_by_all()
        return (
            f"select p1.{mine} as {a}, p2.{theirs} as {b} from {sides[0]} positional join {sides[1]}",
            [Column(a, "i"), Column(b, "i")],
        )

    def lateral_join(self) -> Query:
        text, _item, one, two = self.keyed()
        other_text, _other, key, more = self.keyed()
        a, b, n = self.name("a"), self.name("b"), self.name("lat")
        limited = f"select max({more}) as {b} from {other_text} where {key} = {one}"
        return (
            f"select {two} as {a}, {n}.{b} from {text} {self.choose(('left join', 'join'))} lateral "
            f"({limited}) as {n} on true",
            [Column(a, "i"), Column(b, "i")],
        )

    def by_name(self) -> Query:
        text, _item, one, two = self.keyed()
        other_text, _other, key, more = self.keyed()
        a, b = self.name("a"), self.name("b")
        second = f"{key} as {b}, {more} as {a}" if self.chance(0.7) else f"{more} as {a}"
        return (
            f"select {one} as {a}, {two} as {b} from {text} union {self.choose(('', 'all '))}by name "
            f"select {second} from {other_text}",
            [Column(a, "i"), Column(b, "i")],
        )

    def odd_window(self) -> Query:
        text, item, one, two = self.keyed()
        a, s, w = self.name("a"), self.name("s"), self.name("win")
        way = self.random.randrange(3)
        if way == 0:
            unit = self.choose(("rows", "groups"))
            order = self.total_order(item, [one + self.nulls()]) if unit == "rows" else one
            exclude = self.choose(("ties", "group", "current row", "no others"))
            frame = f"{unit} between {self.choose((1, 2))} preceding and {self.choose(('current row', '1 following'))}"
            if unit == "rows" and exclude in ("ties", "group"):
                exclude = "current row"
            return (
                f"select {one} as {a}, cast(sum({two}) over (order by {order} {frame} exclude {exclude}) "
                f"as integer) as {s} from {text}",
                [Column(a, "i"), Column(s, "i")],
            )
        order = self.total_order(item, [one + self.nulls()])
        if way == 1:
            function = self.choose(("first_value", "last_value", "lag", "lead"))
            nulls = self.choose((" ignore nulls", " ignore nulls", " respect nulls"))
            return (
                f"select {one} as {a}, {function}({two}{nulls}) over (order by {order}) as {s} from {text}",
                [Column(a, "i"), Column(s, "i")],
            )
        return (
            f"select {one} as {a}, cast(count({two}) over {w} as integer) as {s} from {text} "
            f"window {w} as (partition by {one} order by {order})",
            [Column(a, "i"), Column(s, "i")],
        )

    def lists(self) -> Query:
        text, _item, one, two = self.keyed()
        a, j = self.name("a"), self.name("joined")
        if self.chance(0.5):
            made = f"list_transform([{one}, {two}], lambda q: q {self.choose(('+', '*'))} {self.choose((2, 3))})"
        else:
            made = f"[q + 1 for q in [{one}, {two}] if q > {self.choose((1, 2, 3))}]"
        return (
            f"select {one} as {a}, cast({made} as varchar) as {j} from {text}",
            [Column(a, "i"), Column(j, "t")],
        )

    # -- what is not known to be harmless -----------------------------------------------------------

    def rare_functions(self) -> Query:
        text, item, one, two = self.keyed()
        word = self.choose(self.texts(item))
        a, b = self.name("a"), self.name("b")
        if self.chance(0.3):
            made = self.choose(
                (
                    f"levenshtein({word}, 'ash')",
                    f"gcd({one}, {two})",
                    f"lcm({one}, 3)",
                    f"length(format('{{}}-{{}}', {one}, {word}))",
                )
            )
            return (
                f"select {one} as {a}, cast({made} as integer) as {b} from {text}",
                [Column(a, "i"), Column(b, "i")],
            )
        # Sums of whole numbers and choices by a total order: no two ways to come to another answer.
        aggregate = self.choose(
            (
                f"cast(kahan_sum({one}) as integer)",
                f"cast(favg({one}) * 4 as integer)",
                f"cast(round(10 * entropy({one})) as integer)",
                f"cast(mad({one}) as integer)",
                f"cast(product({one} % 3) as integer)",
                f"bit_count(bitstring_agg({one} % 20, 0, 20))",
                f"max({two}) + cast(bit_xor({one}) as integer)",
                f"cardinality(histogram({one}))",
                f"cast(quantile_disc({one}, {self.choose(('0.25', '0.5'))}) as integer)",
                f"cast(weighted_avg({one}, {two}) as integer)",
                f"arg_max_null({one}, {one})",
            )
        )
        return f"select {aggregate} as {a}, count(*) as {b} from {text}{self.where([item], 0.3)}", [
            Column(a, "i"),
            Column(b, "i"),
        ]

    def subscripts(self) -> Query:
        text, _item, one, two = self.keyed()
        a, g = self.name("a"), self.name("g")
        values = self.choose((f"[{one}, {two}]", f"[{one}]", f"[{two}, 1, 2]"))
        return (
            f"select {one} as {a}, cast(generate_subscripts({values}, 1) as integer) as {g} from {text}",
            [Column(a, "i"), Column(g, "i")],
        )

    # -- names --------------------------------------------------------------------------------------

    def hidden_in_having(self) -> Query:
        """HAVING over an alias; by chance it is the name of a column below, too."""
        text, _item, one, two = self.keyed()
        key = self.name("key")
        alias = self.choose((self.name("al"), two.rpartition(".")[2]))
        if not alias.isidentifier():
            alias = self.name("al")
        return (
            f"select {one} as {key}, count(*) as {alias} from {text} group by 1 "
            f"having {alias} > {self.choose((1, 2, 3))}",
            [Column(key, "i"), Column(alias, "i")],
        )

    def hidden_in_order(self) -> Query:
        """ORDER BY a name that is an alias and a column, bare or in an expression, under LIMIT."""
        text, _item, one, two = self.keyed()
        alias = one.rpartition(".")[2]
        if not alias.isidentifier():
            return self.ordered_by_all()
        b = self.name("b")
        first = self.choose((alias, f"{alias} + 0", f"coalesce({alias}, 3)"))
        return (
            f"select -{one} as {alias}, {two} as {b} from {text} order by {first}{self.nulls()}, "
            f"{one}, {two} limit {self.choose((3, 5, 8))}",
            [Column(alias, "i"), Column(b, "i")],
        )

    def hidden_in_group(self) -> Query:
        text, _item, one, _two = self.keyed()
        alias = one.rpartition(".")[2]
        if not alias.isidentifier():
            return self.ordered_by_all()
        n = self.name("n")
        by = self.choose((alias, "1", "all", f"{one} % 3"))
        return (
            f"select {one} % 3 as {alias}, count(*) as {n} from {text} group by {by}",
            [Column(alias, "i"), Column(n, "i")],
        )

    def qualified_alias(self) -> Query:
        text, item, one, two = self.keyed()
        a, rank = self.name("a"), self.choose((self.name("al"), two.rpartition(".")[2]))
        if not rank.isidentifier():
            rank = self.name("al")
        order = self.total_order(item, [one + self.nulls()])
        return (
            f"select {one} as {a}, row_number() over (partition by {one} order by {order}) as {rank} "
            f"from {text} qualify {rank} <= {self.choose((1, 2, 4))}",
            [Column(a, "i"), Column(rank, "i")],
        )

    def stored_names(self) -> Query:
        """Two columns of a name: the engine gives one of them another."""
        text, _item, one, two = self.keyed()
        other_text, _other, key, more = self.keyed()
        v, k = self.name("v"), self.name("k")
        sides = [
            f"(select {one} as {k}, {two} as {v} from {text}) as f1",
            f"(select {key} as {k}, max({more}) as {v} from {other_text} group by 1) as f2",
        ]
        self.random.shuffle(sides)
        inner = f"select * from {sides[0]} {self.choose(('join', 'left join'))} {sides[1]} on f1.{k} = f2.{k}"
        return (
            f"select * from ({inner}) as twice",
            [Column(k, "i"), Column(v, "i"), Column(f"{k}_1", "i"), Column(f"{v}_1", "i")],
        )

    def natural_join(self) -> Query:
        text, _item, one, two = self.keyed()
        other_text, _other, key, more = self.keyed()
        k, v, w = self.name("k"), self.name("v"), self.name("w")
        sides = (
            f"(select {one} as {k}, {two} as {v} from {text}) as f1",
            f"(select {key} as {k}, max({more}) as {w} from {other_text} group by 1) as f2",
        )
        kind = self.choose(("join", "left join", "full join"))
        if self.chance(0.5):
            return (
                f"select * from {sides[0]} natural {kind} {sides[1]}",
                [Column(k, "i"), Column(v, "i"), Column(w, "i")],
            )
        return (
            f"select * from {sides[0]} {kind} {sides[1]} using ({k})",
            [Column(k, "i"), Column(v, "i"), Column(w, "i")],
        )

    def keys_as_data(self) -> Query:
        text, item, one, two = self.keyed()
        word = self.choose(self.texts(item))
        a, j = self.name("a"), self.name("json")
        key = self.choose(("'Key'", "'Word'", "'KEY'"))
        made = self.choose(
            (
                f"cast({{{key}: {one}, 'Other': {word}}} as varchar)",
                f"cast(to_json({{{key}: {word}}}) as varchar)",
                f"json_extract_string(to_json({{'Keys': {one}, 'k': {{{key}: {two}}}}}), '$.k.Key')",
            )
        )
        return f"select {one} as {a}, {made} as {j} from {text}", [Column(a, "i"), Column(j, "t")]

    def struct_star(self) -> Query:
        text, _item, one, two = self.keyed()
        s, a, b = self.name("st"), self.name("a"), self.name("b")
        return (
            f"select {s}.* from (select {{'{a}': {one}, '{b}': {two}}} as {s} from {text}) as {self.name('x')}",
            [Column(a, "i"), Column(b, "i")],
        )

    # -- what is proven, and order that is kept -----------------------------------------------------

    def unnest_beside(self) -> Query:
        """UNNEST multiplies rows after GROUP BY, DISTINCT or a window."""
        text, item, one, two = self.keyed()
        a, v = self.name("a"), self.name("v")
        way = self.random.randrange(3)
        if way == 0:
            return (
                f"select {one} as {a}, unnest([count(*), {self.choose(('max', 'min'))}({two})]) as {v} "
                f"from {text} group by 1",
                [Column(a, "i"), Column(v, "i")],
            )
        if way == 1:
            return (
                f"select distinct {one} as {a}, unnest([{two}, {self.choose((1, 2))}]) as {v} from {text}",
                [Column(a, "i"), Column(v, "i")],
            )
        order = self.total_order(item, [two])
        return (
            f"select {one} as {a}, unnest([1, {two}]) as {v} from {text} "
            f"qualify row_number() over (partition by {one} order by {order}) = 1",
            [Column(a, "i"), Column(v, "i")],
        )

    def distinct_on_alias(self) -> Query:
        text, item, one, two = self.keyed()
        a, b = self.name("al"), self.name("b")
        key = self.choose(("1", a))
        return (
            f"select distinct on ({key}) {one} % 4 as {a}, {two} as {b} from {text} "
            f"order by 1, {self.total_order(item, [two + self.nulls()])}",
            [Column(a, "i"), Column(b, "i")],
        )

    def order_into_list(self) -> Query:
        text, item, one, two = self.keyed()
        order = self.total_order(item, [one + self.nulls()])
        a, j = self.name("a"), self.name("joined")
        inner = f"select {two} as {a} from {text} order by {order}"
        if self.chance(0.5):
            return (
                f"select cast(list({a}) as varchar) as {j}, count(*) as {(n := self.name('n'))} from ({inner}) as {self.name('x')}",
                [Column(j, "t"), Column(n, "i")],
            )
        return (
            f"select cast(array({inner}) as varchar) as {j}, n as {(n := self.name('n'))} from (values (1), (2)) as {self.name('x')} (n)",
            [Column(j, "t"), Column(n, "i")],
        )

    def order_into_union(self) -> Query:
        text, item, one, two = self.keyed()
        order = self.total_order(item, [one + self.nulls()])
        a, b = self.name("a"), self.name("b")
        branch = f"(select {one} as {a}, {two} as {b} from {text} order by {order})"
        return (
            f"select * from (select * from {branch} as b1 union all select 1 as {a}, 2 as {b}) "
            f"as {self.name('x')} limit {self.choose((3, 5, 9))}",
            [Column(a, "i"), Column(b, "i")],
        )
