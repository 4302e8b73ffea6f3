"""SELECT: its items, its stars and its groups."""

from __future__ import annotations

from collections.abc import Sequence

from generators.expressions import Atom
from generators.from_clause import FromClause, distinct_names
from generators.schemas import Column


class SelectList(FromClause):
    """Writes one SELECT."""

    items: tuple[int, ...] = (1, 2, 2, 3, 3)
    """How many items a SELECT without groups has."""
    alias_forms: Sequence[int] = range(12)
    """Of the forms of `named`, those that are written."""
    star_counts = True
    """Whether the columns of a `*` count where GROUP BY names positions."""

    def select(self, depth: int, outer: Sequence[Atom] = ()) -> tuple[str, list[Column]]:
        with self.part("SELECT"):
            from_, atoms, sources, bare = self.from_(depth, outer)
            every = [*atoms, *bare]
            if outer and self.chance("correlation", 0.7):
                self.used("correlated subquery")
                every += outer
            shape = self.pick(
                "SELECT form", ("plain", "plain", "plain", "group", "group", "group", "global")
            )
            where = self.clause("where", "WHERE", 0.4, every)
            names = (
                [self.pick("window name", ("w1", "w2"))]
                if self.chance("WINDOW there or not", 0.1)
                else []
            )
            if shape == "plain":
                return self.plain(depth, from_, where, every, sources, names)
            return self.grouped(shape, from_, where, every, names)

    def plain(
        self, depth: int, from_: str, where: str, atoms: list[Atom],
        sources: list[tuple[str, list[Column]]], names: list[str],
    ) -> tuple[str, list[Column]]:  # fmt: skip
        window = f" window {names[0]} as ({self.window_body(atoms)})" if names else ""
        items: list[str] = []
        outputs: list[Column] = []
        lateral: list[Atom] = []
        for _ in range(self.pick("items", self.items)):
            with self.part("item"):
                way = self.pick("item form", range(24))
                if way < 3:
                    texts, columns = self.star(sources)
                    items.append(texts)
                    outputs += columns
                    continue
                if way == 3:
                    made = self.generating(atoms)
                    items.append(made[0])
                    outputs += made[1]
                    continue
                if way < 7:
                    text, kind = self.window(atoms, names)
                elif way == 7 and self.chance("row of a relation", self.rows_of_relations):
                    self.used("row of a relation")
                    text, kind = self.pick("source", sources)[0], "other"
                elif way < 11:
                    text, kind = self.pick("column", atoms)
                else:
                    text, kind = self.any([*atoms, *lateral], self.deep)
                self.named(text, kind, items, outputs, lateral)
        distinct = ""
        order_atoms = atoms
        if self.chance("DISTINCT there or not", 0.15):
            self.used("DISTINCT")
            distinct = "distinct "
            if self.chance("DISTINCT ON", 0.4):
                self.used("DISTINCT ON")
                keys = [
                    self.pick(
                        "DISTINCT ON key", [*[t for t, _ in atoms], *[c for c, _ in outputs], "1"]
                    )
                    for _ in range(self.pick("DISTINCT ON keys", (1, 1, 2)))
                ]
                if self.chance("DISTINCT ON expression", 0.2):
                    self.used("DISTINCT ON expression")
                    keys[-1] = self.any(atoms, 1)[0]
                elif self.chance("constant key", 0.1):
                    self.used("constant key")
                    keys.append(self.pick("constant key", self.constant_keys))
                key = ", ".join(keys)
                distinct = f"distinct on ({key}) "
            else:
                order_atoms = outputs
        qualify = ""
        if self.chance("QUALIFY there or not", 0.1):
            with self.part("QUALIFY"):
                self.used("QUALIFY")
                text, kind = self.window(atoms, names)
                test = self.pick("comparison", ("= 1", "<= 2", "> 1", "is not null"))
                qualify = f" qualify {text} {test}"
        if not items:
            items = ["*"]
        order = self.order_by(order_atoms, outputs=outputs)
        limit = self.limit() if order and self.chance("LIMIT there or not", 0.5) else ""
        if distinct.startswith("distinct on") and not order:
            order = self.order_by(atoms, outputs=outputs, always=True)
        sample = ""
        if self.chance("sample there or not", 0.02):
            self.used("USING SAMPLE")
            sample = f" using sample {self.pick('sample', ('3 rows', '50%', '2'))} (reservoir, {self.pick('sample seed', (1, 2, 42))})"
        rest = f"{where}{window}{qualify}{sample}{order}{limit}"
        if self.chance("FROM first", 0.06):
            self.used("FROM first")
            text = f"from {from_} select {distinct}{', '.join(items)}{rest}"
        else:
            text = f"select {distinct}{', '.join(items)} from {from_}{rest}"
        return text, distinct_names(outputs)

    def named(
        self, text: str, kind: str, items: list[str], outputs: list[Column], lateral: list[Atom]
    ) -> None:
        """An item with its alias, or without."""
        way = self.pick("alias form", self.alias_forms)
        if way == 0:
            items.append(text)
            bare = text.rsplit(".", 1)[-1]
            if bare.isidentifier():
                outputs.append((bare, kind))
            return
        name = self.pick("output alias", self.names)
        if any(c == name for c, _ in outputs):
            name = f"{name}{len(outputs)}"
        if way == 1:
            self.used("alias: expression")
            items.append(f"{name}: {text}")
        elif way == 2:
            if self.chance("odd name", 0.15):
                self.used("a name with spaces")
                name = self.pick("odd name", ("a b", "K k", "1", "select", "k.v")) + str(
                    len(outputs)
                )
                items.append(f'{text} as "{name}"')
                outputs.append((f'"{name}"', kind))
                return
            items.append(f'{text} "{name}"')
        else:
            items.append(f"{text} as {name}")
        outputs.append((name, kind))
        lateral.append((name, kind))
        if len(lateral) > 1:
            self.used("lateral alias")

    def star(self, sources: list[tuple[str, list[Column]]]) -> tuple[str, list[Column]]:
        """`*` in one of its forms."""
        everything = [column for _, columns in sources for column in columns]
        way = self.pick("star form", range(16))
        alias, columns = self.pick("source", sources)
        names = [c for c, _ in columns]
        if not columns or way < 3:
            self.used("*")
            return "*", everything
        if way < 5:
            self.used("alias.*")
            return f"{alias}.*", columns
        one = self.pick("column", names)
        without = [(c, t) for c, t in everything if c != one]
        if way == 5:
            self.used("* EXCLUDE")
            return f"* exclude ({one})", without
        if way == 6:
            self.used("* REPLACE")
            atoms = [(f"{alias}.{c}", t) for c, t in columns]
            return f"* replace ({self.any(atoms, 1)[0]} as {one})", everything
        if way == 7:
            self.used("* RENAME")
            new = self.pick("output alias", self.names)
            return f"* rename ({one} as {new})", [*without, (new, dict(columns)[one])]
        if way == 8:
            self.used("* LIKE")
            pattern = self.pick("pattern", ("'k%'", "'%'", "'_'", "'s'", "'K%'"))
            return (
                f"* {self.pick('pattern word', ('like', 'ilike', 'not like', 'similar to', 'glob'))} {pattern}",
                [],
            )
        pattern = self.pick("pattern", ("'k|v'", "'^.$'", "'s|k'", "'[kv]'", "'K'"))
        function = self.pick(
            "function", ("max", "upper", "length", "hash", "typeof", "first", "count")
        )
        if way == 9:
            self.used("COLUMNS(regex)")
            return f"columns({pattern})", []
        if way == 10:
            self.used("f(COLUMNS(*))")
            exclude = self.pick("star exclude", ("", f" exclude ({one})"))
            return f"{function}(columns(*{exclude}))", []
        if way == 11:
            self.used("COLUMNS(lambda)")
            return (
                f"columns(lambda c: c {self.pick('pattern word', ('like', 'ilike', 'not like', '<', '='))} {self.pick('literal', (chr(39) + 'k' + chr(39), chr(39) + 's%' + chr(39), chr(39) + 'K' + chr(39)))})",
                [],
            )
        if way == 12:
            self.used("*COLUMNS(...)")
            return (
                f"{self.pick('function', ('coalesce', 'concat', 'greatest', 'struct_pack', 'list_value', 'hash'))}(*columns({pattern}))",
                [],
            )
        if way == 13:
            self.used("COLUMNS(list)")
            return f"columns(['{one}', '{self.pick('column', names)}'])", []
        if way == 14:
            self.used("alias.COLUMNS")
            return f"{alias}.columns({pattern})", []
        self.used("COLUMNS AS \\1")
        return (
            f"columns('(k|v|s)') as {self.pick('key', (chr(39) + 'a_' + chr(92) + '1' + chr(39), chr(39) + chr(92) + '0_b' + chr(39)))}",
            [],
        )

    def generating(self, atoms: Sequence[Atom]) -> tuple[str, list[Column]]:
        """An item that makes rows or several columns."""
        way = self.pick("generator", range(8))
        name = self.pick("output alias", ("x", "y", "v"))
        if way < 3:
            self.used("UNNEST in the select list")
            return f"unnest({self.of('list', atoms, 1)}) as {name}", [(name, "int")]
        if way == 3:
            self.used("generate_subscripts")
            return f"generate_subscripts({self.of('list', atoms, 1)}, 1) as {name}", [(name, "int")]
        if way == 4:
            self.used("UNNEST of a struct")
            recursive = self.pick("recursive", ("", ", recursive := true", ", max_depth := 2"))
            return f"unnest([{self.of('struct', atoms, 1)}]{recursive})", []
        if way == 5:
            self.used("UNNEST of a struct")
            return f"unnest({self.of('struct', atoms, 1)})", [("x", "int"), ("y", "str")]
        structs = [t for t, k in atoms if k == "struct"]
        if structs:
            self.used("struct.*")
            exclude = self.pick("star exclude", ("", "", " exclude (x)", " exclude (y)"))
            return f"{self.pick('column', structs)}.*{exclude}", [("x", "int"), ("y", "str")]
        self.used("regexp_split_to_table")
        return f"regexp_split_to_table({self.of('str', atoms, 0)}, '') as {name}", [(name, "str")]

    def grouped(
        self, shape: str, from_: str, where: str, atoms: list[Atom], names: list[str]
    ) -> tuple[str, list[Column]]:
        if shape == "group" and self.star_counts and self.chance("positions behind a star", 0.06):
            return self.behind_a_star(from_, where, atoms)
        keys: list[Atom] = []
        if shape == "group":
            for _ in range(self.pick("GROUP BY keys", (1, 1, 2, 2))):
                with self.part("GROUP BY key"):
                    if self.chance("GROUP BY expression", 0.25):
                        keys.append(self.any(atoms, 1))
                    else:
                        keys.append(self.pick("column", atoms))
        aggregates = [self.aggregate(atoms, 1) for _ in range(self.pick("aggregates", (1, 1, 2)))]
        inside = [*keys, *aggregates]
        items: list[str] = []
        outputs: list[Column] = []
        lateral: list[Atom] = []
        used_keys: list[str] = []
        for i, (text, kind) in enumerate(keys):
            if self.chance("key in the select list", 0.8):
                self.named(text, kind, items, outputs, lateral)
                used_keys.append(str(len(items)))
                # A key is written again, as an ordinal, or as its alias.
                form = self.pick("GROUP BY form", range(6))
                if form == 0:
                    self.used("GROUP BY ordinal")
                    keys[i] = (str(len(items)), kind)
                elif form == 1 and outputs and items[-1].endswith(outputs[-1][0]):
                    self.used("GROUP BY alias")
                    keys[i] = (outputs[-1][0], kind)
        if keys and self.chance("one more key", 0.1):
            self.used("constant or repeated key")
            more = [*self.constant_keys, *used_keys, *(c for c, _ in outputs)]
            place = self.pick("place of a key", (0, len(keys)))
            keys.insert(place, (self.pick("one more key", [*more, *(t for t, _ in keys)]), "int"))
        for text, kind in aggregates:
            with self.part("item"):
                way = self.pick("item form", range(10))
                if way == 0:
                    made, kind = self.any([*inside, *lateral], 1)
                    self.named(made, kind, items, outputs, lateral)
                elif way == 1:
                    self.used("window over groups")
                    made, kind = self.window(inside, [])
                    self.named(made, kind, items, outputs, lateral)
                elif way == 2 and shape == "group":
                    self.used("UNNEST beside GROUP BY")
                    name = self.pick("output alias", ("x", "y"))
                    items.append(f"{self.unnest}({self.of('list', inside, 1)}) as {name}")
                    outputs.append((name, "int"))
                else:
                    self.named(text, kind, items, outputs, lateral)
        if not items:
            items, outputs = ["count(*) as n"], [("n", "int")]
        group = ""
        if shape == "group":
            with self.part("GROUP BY"):
                self.used("GROUP BY")
                listed = ", ".join(t for t, _ in keys)
                form = self.pick(
                    "grouping",
                    ("plain",) * 14
                    + ("all", "rollup", "cube", "sets", "sets", "parts", "nested", "product"),
                )
                if form == "all":
                    self.used("GROUP BY ALL")
                    group = " group by all"
                elif form in ("rollup", "cube"):
                    self.used(form.upper())
                    group = f" group by {form} ({listed})"
                elif form == "sets":
                    self.used("GROUPING SETS")
                    last = self.pick("grouping sets", ("()", f"({keys[0][0]})", f"({keys[-1][0]})"))
                    group = f" group by grouping sets (({listed}), {last})"
                    if self.chance("GROUPING()", 0.5) and not keys[0][0].isdigit():
                        self.used("GROUPING()")
                        items.append(
                            f"{self.pick('function', ('grouping', 'grouping_id'))}({keys[0][0]}) as g"
                        )
                        outputs.append(("g", "int"))
                elif form == "nested" and len(keys) > 1:
                    self.used("nested sets")
                    one, two = keys[0][0], keys[1][0]
                    group = " group by " + self.pick(
                        "nested sets",
                        (
                            f"grouping sets (rollup ({one}, {two}), ())",
                            f"rollup (({one}, {two}), {one})",
                            f"cube (({one}), ({two}, {one}))",
                            f"grouping sets (({one}), ({one}, {two}), {two}, ())",
                        ),
                    )
                elif form == "product" and len(keys) > 1:
                    self.used("product of sets")
                    words = [self.pick("set word", ("rollup", "cube")) for _ in range(2)]
                    group = f" group by {words[0]} ({keys[0][0]}), {words[1]} ({keys[1][0]})"
                elif form == "parts" and len(keys) > 1:
                    self.used("GROUP BY a, ROLLUP (b)")
                    group = f" group by {keys[0][0]}, rollup ({keys[1][0]})"
                else:
                    group = f" group by {listed}"
        having = ""
        if self.chance("HAVING there or not", 0.25):
            with self.part("HAVING"):
                self.used("HAVING")
                atoms_ = [*inside, *outputs] if self.chance("alias in HAVING", 0.5) else inside
                having = f" having {self.of('bool', atoms_, 1)}"
        qualify = ""
        if self.qualifies and self.chance("QUALIFY there or not", 0.06):
            with self.part("QUALIFY"):
                self.used("QUALIFY")
                text, _ = self.window(inside, [])
                qualify = (
                    f" qualify {text} {self.pick('comparison', ('= 1', '<= 2', 'is not null'))}"
                )
        distinct = "distinct " if self.chance("DISTINCT there or not", 0.06) else ""
        tail = self.tail(inside, outputs)
        text = (
            f"select {distinct}{', '.join(items)} from {from_}{where}{group}{having}{qualify}{tail}"
        )
        return text, distinct_names(outputs)

    def behind_a_star(self, from_: str, where: str, atoms: list[Atom]) -> tuple[str, list[Column]]:
        """Groups by positions that count the columns of a `*`."""
        self.used("GROUP BY ordinal behind a star")
        inner: list[str] = []
        outputs: list[Column] = []
        for name in ("k", "v", "s")[: self.pick("columns of a star", (1, 2, 2, 3))]:
            with self.part("item"):
                text, kind = self.any(atoms, 1)
            inner.append(f"{text} as {name}")
            outputs.append((name, kind))
        first = self.pick("item before a star", ("", "", "7 as c, "))
        places = [str(i + 1 + bool(first)) for i in range(len(outputs))]
        if self.chance("positions turned", 0.5):
            places.reverse()
        star = self.pick("star", ("*", "o.*"))
        form = self.pick("grouping by positions", ("{}", "{}", "{}", "rollup ({})"))
        text = (
            f"select {first}{star}, count(*) as n from (select {', '.join(inner)} from {from_}{where}) as o"
            f" group by {form.format(', '.join(places))}"
        )
        return text, [*([("c", "int")] if first else []), *outputs, ("n", "int")]

    def tail(self, atoms: Sequence[Atom], outputs: list[Column]) -> str:
        """ORDER BY and LIMIT."""
        order = self.order_by(atoms, outputs=outputs)
        return order + (self.limit() if order and self.chance("LIMIT there or not", 0.5) else "")
