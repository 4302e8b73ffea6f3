"""Writes the artifacts of a dbt project that does not exist: manifest.json and catalog.json.

What is guaranteed: the same arguments and seed write the same bytes; every model's SQL is valid
Spark SQL against the columns of its parents, and the catalog lists those columns; models come in
the layers, shapes and sizes of real projects (2-4 KB of compiled SQL a model, as CTE stacks).
Nothing is kept in memory but names and columns, so 10,000 models are written in a minute.
Macros and hooks are as many, and as hard to read, as in real projects: 500 of dbt's, those of two
packages (made_packages.py), hooks of models, seeds and runs.

    python bench/generate.py --models 1000 target/bench/1000

Besides ``project`` there are three shapes that hurt: ``wide`` (10,000 columns in one model),
``long`` (a query of 2,000 lines) and ``deep`` (a chain of 500 models).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import made_packages
from made_packages import OBSERVER, UPLOADER

PROJECT: Final = "bench"
CATALOG: Final = "main"
"""The database of every relation where the adapter has one (Databricks' Unity Catalog)."""

ADAPTERS: Final = ("databricks", "spark")
SHAPES: Final = ("project", "wide", "long", "deep")
TYPES: Final = {
    "id": "bigint",
    "int": "int",
    "num": "decimal(18,2)",
    "str": "string",
    "ts": "timestamp",
    "date": "date",
    "bool": "boolean",
    "list": "array<string>",
    "place": "struct<city:string,country:string,zip:string>",
}
"""Kinds of columns, and the type that the catalog says."""

DOMAIN_SIZE: Final = 60
"""Models of one domain (a team's folder); a bigger project has more of them."""

MAX_DEPTH: Final = 14
MAX_NAME: Final = 34
MAX_COLUMNS: Final = 60

# --- words -----------------------------------------------------------------------------------------

_SYSTEMS: Final = (
    "shopify stripe salesforce zendesk netsuite hubspot marketo jira segment braze adyen workday "
    "greenhouse intercom klaviyo recurly zuora sap mongo billing erp crm pos wms"
).split()
_ENTITIES: Final = (
    "order customer payment invoice product account session event subscription ticket campaign "
    "shipment refund employee store supplier contract lead opportunity visit coupon cart review "
    "device message transfer ledger plan quote return warehouse asset policy claim booking route"
).split()
_STRINGS: Final = (
    "status channel currency country region city email phone first_name last_name full_name "
    "description title category brand sku color source medium referrer platform browser locale "
    "language timezone postal_code street payment_method card_brand reason notes priority stage "
    "owner_name department segment tier plan_name external_reference version_tag url path host "
    "campaign_name ad_group utm_term coupon_code tax_code cost_center"
).split()
_NUMBERS: Final = (
    "amount subtotal tax_amount discount_amount shipping_amount total_amount unit_price unit_cost "
    "list_price fee balance credit_limit exchange_rate margin gross_amount net_amount paid_amount "
    "refunded_amount outstanding_amount weight volume score rating conversion_rate budget spend"
).split()
_INTEGERS: Final = (
    "quantity line_number attempt_count item_count seat_count duration_seconds page_views clicks "
    "impressions retries position revision"
).split()
_TIMES: Final = (
    "created_at updated_at deleted_at processed_at paid_at shipped_at delivered_at cancelled_at "
    "started_at ended_at confirmed_at expires_at first_seen_at last_seen_at"
).split()
_DATES: Final = "order_date due_date birth_date effective_date start_date end_date".split()
_FLAGS: Final = (
    "is_active is_deleted is_test is_primary is_verified is_billable is_refundable has_discount "
    "is_internal is_first is_subscribed"
).split()
_VALUES: Final = (
    "new open closed active paused cancelled pending approved rejected card cash transfer web app "
    "store partner gold silver bronze emea amer apac"
).split()


class Column(NamedTuple):
    """A column, its name and its kind (see `TYPES`)."""

    name: str
    kind: str


@dataclass(slots=True)
class Relation:
    """A source or a model, as the queries on top of it see it."""

    unique_id: str
    name: str
    schema: str
    reference: str
    jinja: str
    columns: list[Column]
    depth: int = 0

    def of(self, *kinds: str) -> list[Column]:
        """The columns of these kinds."""
        return [c for c in self.columns if c.kind in kinds]


@dataclass(slots=True)
class Model:
    """A model that is ready to be written."""

    relation: Relation
    sql: str
    parents: list[Relation]
    folder: str
    materialized: str = "view"


@dataclass(slots=True)
class Generated:
    """What was written.

    Attributes:
        models, sources, tests: how many of them.
        columns: columns of all models.
        sql_bytes: compiled SQL of all models.
        manifest_bytes: size of manifest.json.
        depth: models on the longest path.
    """

    models: int = 0
    sources: int = 0
    tests: int = 0
    columns: int = 0
    sql_bytes: int = 0
    manifest_bytes: int = 0
    depth: int = 0


# --- expressions -----------------------------------------------------------------------------------

_DERIVED: Final[tuple[tuple[str, tuple[str, ...], str, str], ...]] = (
    ("str", ("str",), "lower(trim({0}))", "{0}_clean"),
    ("str", ("str",), "coalesce(nullif(trim({0}), ''), 'unknown')", "{0}_filled"),
    ("str", ("str", "str"), "concat_ws(' ', {0}, {1})", "{0}_label"),
    ("str", ("str",), "upper(left({0}, 2))", "{0}_code"),
    ("str", ("str",), "regexp_replace({0}, '[^0-9a-z]', '')", "{0}_slug"),
    (
        "str",
        ("str",),
        "case\n    when {0} in ('{v0}', '{v1}') then '{v2}'\n    when {0} = '{v3}' then '{v4}'\n"
        "    else 'other'\nend",
        "{0}_group",
    ),
    (
        "str",
        ("num",),
        "case\n    when {0} >= 1000 then 'high'\n    when {0} >= 100 then 'medium'\n"
        "    when {0} is null then 'unknown'\n    else 'low'\nend",
        "{0}_band",
    ),
    ("str", ("id",), "sha2(cast({0} as string), 256)", "{0}_hash"),
    (
        "str",
        ("id", "ts"),
        "md5(\n    concat_ws(\n        '|',\n        coalesce(cast({0} as string), '_null_'),\n"
        "        coalesce(cast({1} as string), '_null_')\n    )\n)",
        "{0}_key",
    ),
    ("num", ("num",), "round(coalesce({0}, 0) / 100, 2)", "{0}_usd"),
    ("num", ("num", "num"), "coalesce({0}, 0) - coalesce({1}, 0)", "net_{0}"),
    ("num", ("num", "num"), "{0} / nullif({1}, 0)", "{0}_share"),
    ("num", ("bool", "num"), "case when {0} then {1} else 0 end", "{1}_counted"),
    ("num", ("num", "int"), "{0} * {1}", "{0}_extended"),
    ("num", ("str", "num"), "case when {0} = '{v0}' then -1 * {1} else {1} end", "signed_{1}"),
    ("int", ("ts", "ts"), "datediff({0}, {1})", "days_to_{0}"),
    ("int", ("str",), "length({0})", "{0}_length"),
    ("int", ("date",), "year({0})", "{0}_year"),
    ("date", ("ts",), "cast({0} as date)", "{0}_day"),
    ("date", ("date",), "date_add({0}, 30)", "{0}_plus_30"),
    ("ts", ("ts",), "date_trunc('month', {0})", "{0}_month"),
    ("ts", ("ts", "ts"), "coalesce({0}, {1})", "{0}_or_later"),
    ("ts", ("ts", "ts"), "greatest({0}, {1})", "latest_{0}"),
    ("bool", ("ts",), "{0} is not null", "has_{0}"),
    ("bool", ("num",), "coalesce({0}, 0) > 0", "has_{0}"),
    ("bool", ("str",), "{0} in ('{v0}', '{v1}', '{v2}')", "is_{0}_known"),
    ("bool", ("bool", "ts"), "{0} and {1} >= current_timestamp() - interval 30 days", "recent_{0}"),
)
_AGGREGATES: Final[tuple[tuple[str, tuple[str, ...], str, str], ...]] = (
    ("num", ("num",), "sum({0})", "total_{0}"),
    ("num", ("num",), "avg({0})", "avg_{0}"),
    ("num", ("num",), "max({0})", "max_{0}"),
    ("num", ("num", "str"), "sum(case when {1} = '{v0}' then {0} else 0 end)", "{v0}_{0}"),
    ("int", ("id",), "count(distinct {0})", "{0}_count"),
    ("int", ("str",), "count(distinct {0})", "{0}_count"),
    ("int", ("bool",), "count_if({0})", "{0}_count"),
    ("ts", ("ts",), "min({0})", "first_{0}"),
    ("ts", ("ts",), "max({0})", "last_{0}"),
    ("str", ("str", "ts"), "max_by({0}, {1})", "latest_{0}"),
    ("list", ("str",), "collect_set({0})", "{0}_set"),
    ("num", ("num",), "percentile_approx({0}, 0.5)", "median_{0}"),
)
_WINDOWS: Final[tuple[tuple[str, tuple[str, ...], str, str], ...]] = (
    ("int", (), "row_number() over ({w})", "row_index"),
    ("int", (), "dense_rank() over ({w})", "row_rank"),
    ("ts", ("ts",), "lag({0}) over ({w})", "previous_{0}"),
    ("str", ("str",), "lead({0}) over ({w})", "next_{0}"),
    (
        "num",
        ("num",),
        "sum({0}) over (\n    {w}\n    rows between unbounded preceding and current row\n)",
        "running_{0}",
    ),
    ("num", ("num",), "avg({0}) over ({p})", "usual_{0}"),
    ("str", ("str",), "first_value({0}) over ({w})", "initial_{0}"),
)
_PREDICATES: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("str",), "{0} <> '{v0}'"),
    (("str",), "{0} in ('{v0}', '{v1}', '{v2}')"),
    (("str",), "lower({0}) not like '%test%'"),
    (("ts",), "{0} >= '2021-01-01'"),
    (("date",), "{0} between '2020-01-01' and current_date()"),
    (("bool",), "not coalesce({0}, false)"),
    (("num",), "{0} > 0"),
    (("id",), "{0} is not null"),
)

_Named = tuple[str, str]
"""A column as an expression writes it (``orders.amount``) and its own name (``amount``)."""


class _Names:
    """Output names of one query: no two alike, none too long."""

    __slots__ = ("taken",)

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def free(self, name: str) -> str:
        name = name[:MAX_NAME].rstrip("_")
        unique, n = name, 2
        while unique in self.taken:
            unique = f"{name}_{n}"
            n += 1
        self.taken.add(unique)
        return unique


class _Writer:
    """Writes queries over relations with a random generator of its own."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    # -- parts ------------------------------------------------------------------------------------

    def fill(
        self,
        options: Sequence[tuple[str, tuple[str, ...], str, str]],
        scope: dict[str, list[_Named]],
        names: _Names,
        **more: str,
    ) -> tuple[str, Column] | None:
        """One of the options over columns in scope: its text and the column it makes."""
        for _ in range(8):
            kind, needs, text, name = self.rng.choice(options)
            if any(not scope.get(k) for k in needs):
                continue
            used = [self.rng.choice(scope[k]) for k in needs]
            if len(set(used)) < len(used):
                continue
            values = {f"v{i}": v for i, v in enumerate(self.rng.sample(_VALUES, 5))}
            written = text.format(*(u[0] for u in used), **values, **more)
            called = name.format(*(u[1] for u in used), **values)
            return written, Column(names.free(called), kind)
        return None

    def predicate(self, scope: dict[str, list[_Named]]) -> str:
        for _ in range(8):
            needs, text = self.rng.choice(_PREDICATES)
            if any(not scope.get(k) for k in needs):
                continue
            used = [self.rng.choice(scope[k])[0] for k in needs]
            values = {f"v{i}": v for i, v in enumerate(self.rng.sample(_VALUES, 3))}
            return text.format(*used, **values)
        return "1 = 1"

    def where(self, scope: dict[str, list[_Named]], most: int = 3) -> str:
        """A WHERE clause, or nothing."""
        count = self.rng.randint(0, most)
        if not count:
            return ""
        terms = dict.fromkeys(self.predicate(scope) for _ in range(count))
        return "\nwhere " + "\n    and ".join(terms)

    def derived(
        self, count: int, scope: dict[str, list[_Named]], names: _Names
    ) -> list[tuple[str, Column]]:
        expressions = (self.fill(_DERIVED, scope, names) for _ in range(count))
        return [f for f in expressions if f is not None]

    def pick(self, columns: Sequence[Column], least: int, most: int) -> list[Column]:
        """Some of the columns, in their order, the identifiers more likely than others."""
        count = min(len(columns), self.rng.randint(least, most))
        weight = [
            (self.rng.random() * (0.5 if c.kind == "id" else 1.0), i) for i, c in enumerate(columns)
        ]
        return [columns[i] for i in sorted(i for _, i in sorted(weight)[:count])]

    def window(self, relation: Sequence[Column]) -> tuple[str, str] | None:
        """A window's text and its partition alone."""
        keys = [c.name for c in relation if c.kind == "id"]
        times = [c.name for c in relation if c.kind in ("ts", "date")]
        if not keys or not times:
            return None
        partition = f"partition by {self.rng.choice(keys)}"
        direction = self.rng.choice(("", " desc"))
        return f"{partition} order by {self.rng.choice(times)}{direction}", partition

    # -- models -----------------------------------------------------------------------------------

    def staging(self, source: Relation) -> tuple[str, list[Column]]:
        """Rename, cast and clean a source."""
        names = _Names()
        selected: list[tuple[str, str]] = []
        columns: list[Column] = []
        entity = source.name.split("_", 1)[1].rstrip("_0123456789")
        for column in source.columns:
            if column.name.startswith("_"):
                continue
            if column.kind == "place":
                for part in ("city", "country", "zip"):
                    name = names.free(f"{_snake(column.name)}_{part}")
                    selected.append((f"{column.name}.{part}", name))
                    columns.append(Column(name, "str"))
                continue
            name = names.free(f"{entity}_id" if column.name == "id" else _snake(column.name))
            selected.append((self.cast(column), name))
            columns.append(Column(name, column.kind))
        ctes = [("source", f"select * from {source.reference}")]
        loaded = source.columns[-1].name
        body = f"select\n{_listed(selected)}\nfrom source"
        if self.rng.random() < 0.4:
            body += f"\nwhere {loaded} is not null"
        ctes.append(("renamed", body))
        last = "renamed"
        if self.rng.random() < 0.3:
            order = next((c.name for c in columns if c.kind == "ts"), columns[0].name)
            ctes.append(
                (
                    "ranked",
                    f"select\n    *,\n    row_number() over (partition by {columns[0].name} "
                    f"order by {order} desc) as _recency\nfrom renamed",
                )
            )
            ctes.append(
                ("deduplicated", "select * except (_recency)\nfrom ranked\nwhere _recency = 1")
            )
            last = "deduplicated"
        if self.rng.random() < 0.5:
            extra = self.derived(
                self.rng.randint(3, 9), _scope(columns), _Names(c.name for c in columns)
            )
            ctes.append(("final", f"select\n    *,\n{_aliased(extra)}\nfrom {last}"))
            columns += [c for _, c in extra]
            last = "final"
        return _stack(ctes, last), columns

    def cast(self, column: Column) -> str:
        """How staging reads a raw column."""
        if self.rng.random() < 0.5 or column.kind in ("list", "place"):
            return column.name
        return {
            "str": f"nullif(trim({column.name}), '')",
            "num": f"cast({column.name} as decimal(18, 2))",
            "ts": f"cast({column.name} as timestamp)",
            "date": f"to_date({column.name})",
            "bool": f"coalesce({column.name}, false)",
            "id": f"cast({column.name} as bigint)",
            "int": f"cast({column.name} as int)",
        }[column.kind]

    def joined(self, parents: Sequence[Relation]) -> tuple[str, list[Column]]:
        """Import, join, derive: the commonest model there is."""
        ctes, aliases = self.imports(parents)
        names = _Names()
        selected: list[tuple[str, str]] = []
        columns: list[Column] = []
        scope: dict[str, list[_Named]] = {}
        counts: dict[str, int] = {}
        for parent in parents:
            for column in parent.columns:
                counts[column.name] = counts.get(column.name, 0) + 1
        share = max(6, 40 // len(parents))
        for parent, alias in zip(parents, aliases, strict=True):
            for column in self.pick(parent.columns, share // 2, share):
                bare = counts[column.name] == 1 and self.rng.random() < 0.15
                written = column.name if bare else f"{alias}.{column.name}"
                name = names.free(column.name)
                selected.append((written, name))
                columns.append(Column(name, column.kind))
                scope.setdefault(column.kind, []).append((written, column.name))
        extra = self.derived(self.rng.randint(4, 12), scope, names)
        body = "select\n" + ",\n".join(filter(None, (_listed(selected), _aliased(extra))))
        columns += [c for _, c in extra]
        body += f"\nfrom {aliases[0]}"
        for index in range(1, len(parents)):
            body += self.join(parents, aliases, index)
        body += self.where(scope)
        ctes.append(("joined", body))
        return self.finish(ctes, "joined", columns)

    def imports(self, parents: Sequence[Relation]) -> tuple[list[tuple[str, str]], list[str]]:
        """One import CTE a parent, some with only the columns and rows that are wanted."""
        names = _Names()
        ctes: list[tuple[str, str]] = []
        aliases: list[str] = []
        for parent in parents:
            alias = parent.name.split("__")[-1]
            alias = names.free(alias if alias[-1] in "s0123456789" else f"{alias}s")
            body = f"select * from {parent.reference}"
            if self.rng.random() < 0.2:
                body = f"select *\nfrom {parent.reference}{self.where(_scope(parent.columns), 2)}"
            ctes.append((alias, body))
            aliases.append(alias)
        return ctes, aliases

    def join(self, parents: Sequence[Relation], aliases: Sequence[str], index: int) -> str:
        kind = self.rng.choice(
            ("left join", "left join", "left join", "inner join", "full outer join")
        )
        right = {c.name for c in parents[index].of("id")}
        for left in range(index):
            common = [c.name for c in parents[left].of("id") if c.name in right]
            if common:
                key = self.rng.choice(common)
                on = f"{aliases[left]}.{key} = {aliases[index]}.{key}"
                break
        else:
            left = self.rng.randrange(index)
            ours = [c.name for c in parents[left].of("id")] or [parents[left].columns[0].name]
            theirs = [c.name for c in parents[index].of("id")] or [parents[index].columns[0].name]
            on = (
                f"cast({aliases[left]}.{self.rng.choice(ours)} as string) = "
                f"cast({aliases[index]}.{self.rng.choice(theirs)} as string)"
            )
        if self.rng.random() < 0.2:
            on += "\n        and " + self.predicate(_scope(parents[index].columns, aliases[index]))
        return f"\n{kind} {aliases[index]}\n    on {on}"

    def finish(
        self, ctes: list[tuple[str, str]], last: str, columns: list[Column]
    ) -> tuple[str, list[Column]]:
        """A few more layers of ``select *`` with windows and cases on top, then the last select."""
        roll = self.rng.random()
        if roll < 0.35 and (window := self.window(columns)):
            names = _Names(c.name for c in columns)
            added = [
                self.fill(_WINDOWS, _scope(columns), names, w=window[0], p=window[1])
                for _ in range(self.rng.randint(1, 3))
            ]
            extra = [a for a in added if a is not None]
            if extra:
                ctes.append(("windowed", f"select\n    *,\n{_aliased(extra)}\nfrom {last}"))
                columns = columns + [c for _, c in extra]
                last = "windowed"
        for layer in ("calculated", "final"):
            if self.rng.random() < 0.3:
                continue
            names = _Names(c.name for c in columns)
            extra = self.derived(self.rng.randint(2, 7), _scope(columns), names)
            if self.rng.random() < 0.5:
                body = f"select\n    *,\n{_aliased(extra)}\nfrom {last}"
            else:
                # The wide select at the end that spells out what the table holds.
                listed = ",\n".join(f"    {c.name}" for c in columns)
                body = f"select\n{listed},\n{_aliased(extra)}\nfrom {last}"
            ctes.append((layer, body))
            columns = columns + [c for _, c in extra]
            last = layer
        if len(columns) > MAX_COLUMNS:
            columns = self.pick(columns, MAX_COLUMNS // 2, MAX_COLUMNS)
            listed = ",\n".join(f"    {c.name}" for c in columns)
            ctes.append(("narrowed", f"select\n{listed}\nfrom {last}"))
            last = "narrowed"
        return _stack(ctes, last), columns

    def union(self, parents: Sequence[Relation]) -> tuple[str, list[Column]]:
        """The same columns of several parents, one below the other."""
        wanted = self.pick(parents[0].columns, 8, 22)
        branches = []
        imports, aliases = self.imports(parents)
        for parent, alias in zip(parents, aliases, strict=True):
            have = {c.name: c.kind for c in parent.columns}
            spare = {k: [c.name for c in parent.of(k)] for k in TYPES}
            selected: list[tuple[str, str]] = []
            for column in wanted:
                if have.get(column.name) == column.kind:
                    written = column.name
                elif spare[column.kind] and self.rng.random() < 0.6:
                    written = self.rng.choice(spare[column.kind])
                else:
                    written = f"cast(null as {TYPES[column.kind]})"
                selected.append((written, column.name))
            selected.append((f"'{parent.name}'", "record_source"))
            branches.append(
                f"select\n{_listed(selected)}\nfrom {alias}{self.where(_scope(parent.columns), 1)}"
            )
        operator = "\n\nunion all\n\n" if self.rng.random() < 0.85 else "\n\nunion\n\n"
        if any(c.kind == "list" for c in wanted):
            operator = "\n\nunion all\n\n"
        columns = [
            *(c for c in wanted if c.name != "record_source"),
            Column("record_source", "str"),
        ]
        if len(columns) != len(wanted) + 1:
            return self.joined(parents)
        return self.finish([*imports, ("unioned", operator.join(branches))], "unioned", columns)

    def deduplicated(self, parents: Sequence[Relation]) -> tuple[str, list[Column]]:
        """The latest row of each key."""
        parent = parents[0]
        window = self.window(parent.columns)
        if window is None:
            return self.joined(parents)
        imports, aliases = self.imports(parents[:1])
        columns = self.pick(parent.columns, 10, 30)
        listed = "".join(f"    {c.name},\n" for c in columns)
        body = f"select\n{listed}    row_number() over (\n        {window[0]}\n    ) as _row_number\nfrom {aliases[0]}"
        body += self.where(_scope(parent.columns))
        ctes = [*imports, ("ranked", body)]
        listed = ",\n".join(f"    {c.name}" for c in columns)
        ctes.append(("latest", f"select\n{listed}\nfrom ranked\nwhere _row_number = 1"))
        return self.finish(ctes, "latest", columns)

    def aggregated(self, parents: Sequence[Relation]) -> tuple[str, list[Column]]:
        """Measures by key, joined back to what they are about."""
        facts = parents[0]
        keys = self.pick(facts.of("id", "str", "date"), 1, 3)
        if not keys:
            return self.joined(parents)
        key = next((c for c in keys if c.kind == "id"), None)
        about = parents[1] if key and len(parents) > 1 and parents[1].of("id") else None
        imports, aliases = self.imports([facts] if about is None else [facts, about])
        names = _Names(c.name for c in keys)
        scope = _scope(facts.columns)
        expressions = [self.fill(_AGGREGATES, scope, names) for _ in range(self.rng.randint(6, 18))]
        measures = [f for f in expressions if f is not None]
        counted = Column(names.free("row_count"), "int")
        measures.append(("count(*)", counted))
        listed = ",\n".join(f"    {c.name}" for c in keys)
        style = self.rng.random()
        grouping = (
            ", ".join(str(i + 1) for i in range(len(keys)))
            if style < 0.5
            else ",\n    ".join(c.name for c in keys)
        )
        body = f"select\n{listed},\n{_aliased(measures)}\nfrom {aliases[0]}{self.where(scope)}\ngroup by {grouping}"
        if self.rng.random() < 0.15:
            body += "\nhaving count(*) > 1"
        ctes = [*imports, ("aggregated", body)]
        columns = [*keys, *(c for _, c in measures)]
        if about is not None and key is not None:
            theirs = next((c for c in about.of("id") if c.name == key.name), about.of("id")[0])
            names = _Names(c.name for c in columns)
            added = [
                (f"{aliases[1]}.{c.name}", Column(names.free(c.name), c.kind))
                for c in self.pick(about.columns, 4, 12)
            ]
            body = (
                f"select\n    aggregated.*,\n{_aliased(added)}\nfrom aggregated\n"
                f"left join {aliases[1]}\n"
                f"    on aggregated.{key.name} = {aliases[1]}.{theirs.name}"
            )
            ctes.append(("described", body))
            return self.finish(ctes, "described", [*columns, *(c for _, c in added)])
        return self.finish(ctes, "aggregated", columns)

    def pivoted(self, parents: Sequence[Relation]) -> tuple[str, list[Column]]:
        """A pivot spelled as one case an amount and value."""
        parent = parents[0]
        keys, kinds, amounts = parent.of("id"), parent.of("str"), parent.of("num")
        if not keys or not kinds or not amounts:
            return self.joined(parents)
        imports, aliases = self.imports(parents[:1])
        key, by = self.rng.choice(keys), self.rng.choice(kinds)
        names = _Names([key.name])
        cells = []
        for amount in self.rng.sample(amounts, min(len(amounts), 3)):
            for value in self.rng.sample(_VALUES, self.rng.randint(3, 6)):
                text = f"sum(case when {by.name} = '{value}' then {amount.name} else 0 end)"
                cells.append((text, Column(names.free(f"{value}_{amount.name}"), "num")))
        body = f"select\n    {key.name},\n{_aliased(cells)}\nfrom {aliases[0]}{self.where(_scope(parent.columns))}\ngroup by {key.name}"
        return self.finish([*imports, ("pivoted", body)], "pivoted", [key, *(c for _, c in cells)])

    def exploded(self, parents: Sequence[Relation]) -> tuple[str, list[Column]]:
        """One row a list element."""
        parent = parents[0]
        lists, texts = parent.of("list"), parent.of("str")
        if not lists and not texts:
            return self.joined(parents)
        imports, aliases = self.imports(parents[:1])
        columns = [c for c in self.pick(parent.columns, 8, 20) if c.kind != "list"]
        names = _Names(c.name for c in columns)
        columns = columns or [parent.columns[0]]
        array = (
            self.rng.choice(lists).name if lists else f"split({self.rng.choice(texts).name}, ',')"
        )
        if self.rng.random() < 0.5:
            position, element = names.free("element_index"), names.free("element")
            view = f"lateral view outer posexplode({array}) exploded as {position}, {element}"
            added = [Column(position, "int"), Column(element, "str")]
        else:
            element = names.free("element")
            view = f"lateral view explode({array}) exploded as {element}"
            added = [Column(element, "str")]
        listed = "".join(f"    {aliases[0]}.{c.name},\n" for c in columns)
        tail = ",\n".join(f"    exploded.{c.name}" for c in added)
        body = f"select\n{listed}{tail}\nfrom {aliases[0]}\n{view}"
        return self.finish([*imports, ("elements", body)], "elements", [*columns, *added])

    def filtered(self, parents: Sequence[Relation]) -> tuple[str, list[Column]]:
        """A parent's rows as far as others know, or do not know, their key."""
        parent, *others = parents
        imports, aliases = self.imports(parents)
        terms = []
        for other, alias in zip(others, aliases[1:], strict=True):
            ours, theirs = parent.of("id"), other.of("id")
            if not ours or not theirs:
                continue
            left, right = self.rng.choice(ours).name, self.rng.choice(theirs).name
            if self.rng.random() < 0.5:
                terms.append(f"{aliases[0]}.{left} in (select {alias}.{right} from {alias})")
            else:
                negated = self.rng.choice(("", "not "))
                terms.append(
                    f"{negated}exists (\n        select 1\n        from {alias}\n"
                    f"        where {alias}.{right} = {aliases[0]}.{left}\n    )"
                )
        if not terms:
            return self.joined(parents)
        body = f"select {aliases[0]}.*\nfrom {aliases[0]}\nwhere " + "\n    and ".join(terms)
        return self.finish([*imports, ("filtered", body)], "filtered", list(parent.columns))

    def incremental(self, parents: Sequence[Relation], this: str) -> tuple[str, list[Column]]:
        """Only what is newer than the table itself, as an incremental model compiles."""
        parent = parents[0]
        times = parent.of("ts")
        if not times:
            return self.joined(parents)
        imports, aliases = self.imports(parents[:1])
        since = self.rng.choice(times)
        columns = [since, *(c for c in self.pick(parent.columns, 12, 30) if c != since)]
        listed = ",\n".join(f"    {c.name}" for c in columns)
        body = (
            f"select\n{listed}\nfrom {aliases[0]}\nwhere {since.name} > "
            f"(select coalesce(max(t.{since.name}), '1900-01-01') from {this} as t)"
        )
        return self.finish([*imports, ("newer", body)], "newer", columns)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(r.capitalize() for r in rest)


def _scope(columns: Iterable[Column], alias: str = "") -> dict[str, list[_Named]]:
    scope: dict[str, list[_Named]] = {}
    for column in columns:
        written = f"{alias}.{column.name}" if alias else column.name
        scope.setdefault(column.kind, []).append((written, column.name))
    return scope


def _indent(text: str, by: int = 4) -> str:
    return text.replace("\n", "\n" + " " * by)


def _listed(selected: Iterable[tuple[str, str]]) -> str:
    """``expression as name`` lines; the alias is left out where it says nothing new."""
    lines = []
    for text, name in selected:
        same = text.rsplit(".", 1)[-1] == name and "(" not in text
        lines.append(f"    {text}" if same else f"    {_indent(text)} as {name}")
    return ",\n".join(lines)


def _aliased(extra: Iterable[tuple[str, Column]]) -> str:
    return ",\n".join(f"    {_indent(text)} as {column.name}" for text, column in extra)


def _stack(ctes: Iterable[tuple[str, str]], last: str) -> str:
    written = ",\n\n".join(f"{name} as (\n    {_indent(body)}\n)" for name, body in ctes)
    return f"with {written}\n\nselect * from {last}"


# --- projects --------------------------------------------------------------------------------------


class _Builder:
    """Hands out models one after the other, parents first."""

    def __init__(self, models: int, seed: int, adapter: str) -> None:
        self.rng = random.Random(f"dbt_ripple/{seed}/{models}")
        self.write = _Writer(self.rng)
        self.count = models
        self.adapter = adapter
        self.names = _Names()
        self.sources: list[Relation] = []
        self.shared: list[Relation] = []

    def relation(
        self, unique_id: str, name: str, schema: str, jinja: str, columns: list[Column], depth: int
    ) -> Relation:
        return Relation(
            unique_id, name, schema, self.reference(schema, name), jinja, columns, depth
        )

    def reference(self, schema: str, name: str) -> str:
        if self.adapter == "databricks":
            return f"`{CATALOG}`.`{schema}`.`{name}`"
        return f"{schema}.{name}"

    def model(
        self,
        name: str,
        schema: str,
        built: tuple[str, list[Column]],
        parents: Sequence[Relation],
        folder: str,
        materialized: str = "view",
    ) -> Model:
        sql, columns = built
        # A query may have left parents out (a pivot needs but one).
        by_id = {p.unique_id: p for p in parents}
        used = [p for p in by_id.values() if p.reference in sql]
        relation = self.relation(
            f"model.{PROJECT}.{name}",
            name,
            schema,
            f"{{{{ ref('{name}') }}}}",
            columns,
            1 + max((p.depth for p in used), default=0),
        )
        return Model(relation, sql, used, folder, materialized)

    def source(self, system: str, entity: str, width: int | None = None) -> Relation:
        rng = self.rng
        camel = system in _SYSTEMS[::4]
        names = _Names()
        columns = [Column("id", "id")]
        names.free("id")
        count = width if width is not None else min(40, max(10, round(rng.gauss(25, 8))))
        for other in rng.sample(_ENTITIES, rng.randint(1, 4)):
            columns.append(Column(names.free(f"{other}_id"), "id"))
        if rng.random() < 0.3:
            columns.append(Column(names.free("tags"), "list"))
        if rng.random() < 0.25:
            columns.append(Column(names.free("address"), "place"))
        words: list[tuple[str, Sequence[str], float]] = [
            ("str", _STRINGS, 0.42),
            ("num", _NUMBERS, 0.2),
            ("ts", _TIMES, 0.14),
            ("bool", _FLAGS, 0.1),
            ("int", _INTEGERS, 0.08),
            ("date", _DATES, 0.06),
        ]
        kinds = [w[0] for w in words]
        weights = [w[2] for w in words]
        vocabulary = {w[0]: w[1] for w in words}
        columns.append(Column(names.free("created_at"), "ts"))
        while len(columns) < count - 1:
            kind = rng.choices(kinds, weights)[0]
            columns.append(Column(names.free(rng.choice(vocabulary[kind])), kind))
        if camel:
            columns = [Column(_camel(c.name), c.kind) for c in columns]
        columns.append(Column("_loaded_at", "ts"))
        # Every source table has a name of its own, because some tools know relations by that alone.
        table = self.names.free(f"{system}_{entity}")
        unique_id = f"source.{PROJECT}.{system}.{table}"
        jinja = f"{{{{ source('{system}', '{table}') }}}}"
        relation = self.relation(unique_id, table, f"raw_{system}", jinja, columns, 0)
        self.sources.append(relation)
        return relation

    def project(self) -> Iterator[Model]:
        """Domains of about `DOMAIN_SIZE` models, each staging, intermediate and marts."""
        left = self.count
        while left > 0:
            size = min(left, round(self.rng.gauss(DOMAIN_SIZE, DOMAIN_SIZE / 5)))
            if left - size < DOMAIN_SIZE / 3:
                size = left
            size = max(1, size)
            yield from self.domain(size)
            left -= size

    def domain(self, size: int) -> Iterator[Model]:
        rng = self.rng
        staging_count = max(1, round(size * 0.35))
        marts_count = round(size * 0.25)
        topic = self.names.free(rng.choice(_ENTITIES) + "s")
        systems = rng.sample(_SYSTEMS, 3)
        staging: list[Relation] = []
        for _ in range(staging_count):
            system = rng.choice(systems)
            source = self.source(system, rng.choice(_ENTITIES))
            name = self.names.free(f"stg_{system}__{source.name.split('_', 1)[1]}")
            model = self.model(
                name, "staging", self.write.staging(source), [source], f"staging/{system}"
            )
            staging.append(model.relation)
            yield model
        middle: list[Relation] = []
        for _ in range(size - staging_count - marts_count):
            parents = self.parents(
                staging, middle, rng.choices((1, 2, 3, 4, 5), (20, 40, 25, 10, 5))[0]
            )
            verb, built = self.shape(parents)
            name = self.names.free(f"int_{topic}__{parents[0].name.split('__')[-1][:20]}_{verb}")
            model = self.model(name, "intermediate", built, parents, f"intermediate/{topic}")
            middle.append(model.relation)
            yield model
        for _ in range(marts_count):
            parents = self.parents(
                staging, middle, rng.choices((1, 2, 3, 4, 5), (15, 30, 30, 15, 10))[0]
            )
            kind = rng.choice(("fct", "fct", "dim", "rpt"))
            name = self.names.free(f"{kind}_{topic}_{rng.choice(_ENTITIES)}s")
            if kind == "fct" and rng.random() < 0.25:
                built = self.write.incremental(parents, self.reference("marts", name))
                model = self.model(name, "marts", built, parents, f"marts/{topic}", "incremental")
            else:
                built = (
                    self.write.aggregated(parents) if kind == "rpt" else self.write.joined(parents)
                )
                model = self.model(name, "marts", built, parents, f"marts/{topic}", "table")
            if len(self.shared) < 400 and model.relation.depth <= MAX_DEPTH - 6:
                self.shared.append(model.relation)
            middle.append(model.relation)
            yield model

    def parents(
        self, staging: list[Relation], middle: list[Relation], count: int
    ) -> list[Relation]:
        """Mostly the domain's own recent models, now and then another domain's mart."""
        rng = self.rng
        recent = [m for m in middle[-12:] if m.depth < MAX_DEPTH]
        chosen: dict[str, Relation] = {}
        for _ in range(count * 3):
            roll = rng.random()
            if roll < 0.06 and self.shared:
                relation = rng.choice(self.shared)
            elif roll < 0.6 and recent:
                relation = rng.choice(recent)
            else:
                relation = rng.choice(staging)
            chosen.setdefault(relation.unique_id, relation)
            if len(chosen) == count:
                break
        return list(chosen.values())

    def shape(self, parents: Sequence[Relation]) -> tuple[str, tuple[str, list[Column]]]:
        write = self.write
        options: list[
            tuple[float, str, Callable[[Sequence[Relation]], tuple[str, list[Column]]]]
        ] = [
            (34, "joined", write.joined),
            (12, "unioned", write.union),
            (12, "deduplicated", write.deduplicated),
            (18, "aggregated", write.aggregated),
            (7, "pivoted", write.pivoted),
            (7, "exploded", write.exploded),
            (10, "filtered", write.filtered),
        ]
        if len(parents) < 2:
            options = [o for o in options if o[1] not in ("unioned", "filtered")]
        _, verb, build = self.rng.choices(options, [o[0] for o in options])[0]
        return verb, build(parents)

    def wide(self) -> Iterator[Model]:
        """A model of `count` columns over a source that has them all, and one that reads it."""
        source = self.source("erp", "ledger", width=self.count + 1)
        relation: Relation = source
        for name in ("stg_erp__wide", "int_wide", "fct_wide"):
            scope = _scope(relation.columns)
            if name == "stg_erp__wide":
                built = self.write.staging(source)
            elif name == "int_wide":
                built = (
                    f"with wide as (\n    select * from {relation.reference}\n)\n\nselect * from wide",
                    relation.columns,
                )
            else:
                names = _Names()
                selected = [
                    (f"coalesce({c.name}, null)", Column(names.free(c.name), c.kind))
                    for c in relation.columns
                ]
                built = (
                    f"select\n{_aliased(selected)}\nfrom {relation.reference}{self.write.where(scope)}",
                    [c for _, c in selected],
                )
            model = self.model(name, "wide", built, [relation], "wide")
            relation = model.relation
            yield model

    def long(self) -> Iterator[Model]:
        """One model with a query of at least `count` lines over ten staging models."""
        staging = []
        for i in range(10):
            source = self.source(_SYSTEMS[i], _ENTITIES[i])
            model = self.model(
                f"stg_{_SYSTEMS[i]}__{_ENTITIES[i]}",
                "staging",
                self.write.staging(source),
                [source],
                "staging",
            )
            staging.append(model.relation)
            yield model
        ctes, aliases = [], []
        columns: list[Column] = []
        lines, n = 0, 0
        while lines < self.count:
            n += 1
            parents = self.rng.sample(staging, self.rng.randint(2, 4))
            sql, columns = self.write.joined(parents)
            alias = f"block_{n}"
            ctes.append((alias, sql))
            aliases.append((alias, columns))
            lines += sql.count("\n")
        picked = []
        names = _Names()
        for alias, columns in aliases:
            column = next((c for c in columns if c.kind == "num"), columns[0])
            aggregate = f"(select max({column.name}) from {alias})"
            picked.append((aggregate, Column(names.free(f"{alias}_{column.name}"), column.kind)))
        written = ",\n\n".join(f"{name} as (\n    {_indent(body)}\n)" for name, body in ctes)
        sql = f"with {written}\n\nselect\n{_aliased(picked)}"
        yield self.model("fct_long", "marts", (sql, [c for _, c in picked]), staging, "marts")

    def deep(self) -> Iterator[Model]:
        """A chain of `count` models, each with a little logic and a star."""
        source = self.source("erp", "ledger")
        model = self.model(
            "stg_erp__ledger", "staging", self.write.staging(source), [source], "staging"
        )
        yield model
        for i in range(1, self.count):
            relation = model.relation
            kept = [c for c in relation.columns if not c.name.startswith("step_")]
            stars = [c.name for c in relation.columns if c.name.startswith("step_")]
            number = self.rng.choice([c for c in kept if c.kind == "num"] or kept).name
            dropped = f" except ({', '.join(stars)})" if stars else ""
            added = Column(f"step_{i}", "num")
            previous = stars[0] if stars else number
            sql = (
                f"with previous as (\n    select * from {relation.reference}\n),\n\n"
                f"stepped as (\n    select\n        *{dropped},\n"
                f"        coalesce({previous}, {number}) as {added.name}\n    from previous\n)\n\n"
                "select * from stepped"
            )
            model = self.model(f"int_step_{i}", "chain", (sql, [*kept, added]), [relation], "chain")
            yield model


# --- artifacts -------------------------------------------------------------------------------------

_CREATED: Final = 1795251622.0
_DOCS: Final = {"show": True, "node_color": None}
_CONTRACT: Final = {"enforced": False, "alias_types": True, "checksum": None}


def generate(
    folder: Path,
    models: int,
    *,
    seed: int = 0,
    adapter: str = "databricks",
    shape: str = "project",
    tests_per_model: float = 1.5,
) -> Generated:
    """Write manifest.json, catalog.json and the files of seeds of a made-up project.

    Args:
        folder: where to; made if it is not there.
        models: how many models; columns of the one model for ``wide``, lines of the one query for
            ``long``, models of the chain for ``deep``.
        seed: another seed is another project.
        adapter: ``databricks`` (three-part names) or ``spark`` (two-part names).
        shape: one of `SHAPES`.
        tests_per_model: how many data tests a model has on average; their SQL is compiled too.

    Returns:
        What was written.
    """
    if adapter not in ADAPTERS or shape not in SHAPES or models < 1:
        raise ValueError(f"cannot generate {models} models, adapter {adapter}, shape {shape}")
    folder.mkdir(parents=True, exist_ok=True)
    builder = _Builder(models, seed, adapter)
    done = Generated()
    parents: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {}
    columns: dict[str, Relation] = {}
    rng = random.Random(f"tests/{seed}")
    with (folder / "manifest.json").open("w", encoding="utf-8") as out:
        out.write('{"metadata": ' + json.dumps(_metadata("manifest/v12", adapter)))
        out.write(', "nodes": {')
        glue = ""

        def write(entry: dict[str, Any]) -> None:
            nonlocal glue
            unique_id = entry["unique_id"]
            out.write(f"{glue}{json.dumps(unique_id)}: {json.dumps(entry)}")
            glue = ", "
            parents[unique_id] = entry["depends_on"]["nodes"]

        for model in getattr(builder, shape)():
            relation = model.relation
            columns[relation.unique_id] = relation
            done.models += 1
            done.columns += len(relation.columns)
            done.sql_bytes += len(model.sql)
            done.depth = max(done.depth, relation.depth)
            tests = _tests(rng, model, tests_per_model, adapter)
            done.tests += len(tests)
            write(_with_jinja(_model(model, adapter), done.models))
            for test in tests:
                write(test)
        others = [_seed(at, adapter, folder) for at in range(round(done.models * _SEEDS))]
        others += [_table_of_package(table, adapter) for table in made_packages.TABLES]
        for relation, entry in others if shape == "project" else ():
            columns[relation.unique_id] = relation
            write(entry)
        for operation in _operations(adapter):
            write(operation)
        out.write('}, "sources": {')
        glue = ""
        for source in builder.sources:
            done.sources += 1
            parents[source.unique_id] = []
            out.write(
                f"{glue}{json.dumps(source.unique_id)}: {json.dumps(_source(source, adapter))}"
            )
            glue = ", "
        for unique_id, above in parents.items():
            children.setdefault(unique_id, [])
            for parent in above:
                children.setdefault(parent, []).append(unique_id)
        rest: dict[str, Any] = {
            "macros": {macro["unique_id"]: macro for macro in _macros()},
            "docs": {},
            "exposures": {},
            "metrics": {},
            "groups": {},
            "selectors": {},
            "disabled": {},
            "parent_map": parents,
            "child_map": children,
            "group_map": {},
            "saved_queries": {},
            "semantic_models": {},
            "unit_tests": {},
            "functions": {},
        }
        out.write("}, " + json.dumps(rest)[1:])
        done.manifest_bytes = out.tell()
    with (folder / "catalog.json").open("w", encoding="utf-8") as out:
        out.write('{"metadata": ' + json.dumps(_metadata("catalog/v1", adapter)))
        for section, relations in (
            ("nodes", list(columns.values())),
            ("sources", builder.sources),
        ):
            out.write(f', "{section}": {{')
            glue = ""
            for relation in relations:
                entry = _catalog_entry(relation, adapter)
                out.write(f"{glue}{json.dumps(relation.unique_id)}: {json.dumps(entry)}")
                glue = ", "
            out.write("}")
        out.write(', "errors": null}')
    return done


def _metadata(schema: str, adapter: str) -> dict[str, Any]:
    return {
        "dbt_schema_version": f"https://schemas.getdbt.com/dbt/{schema}.json",
        "dbt_version": "1.11.16",
        "generated_at": "2026-11-21T00:00:00.000000Z",
        "invocation_id": "00000000-0000-4000-8000-000000000000",
        "invocation_started_at": "2026-11-21T00:00:00.000000+00:00",
        "env": {},
        "project_name": PROJECT,
        "project_id": hashlib.md5(PROJECT.encode()).hexdigest(),
        "user_id": None,
        "send_anonymous_usage_stats": False,
        "adapter_type": adapter,
        "quoting": {"database": True, "schema": True, "identifier": True, "column": None},
        "run_started_at": "2026-11-21T00:00:00.000000+00:00",
    }


def _column(column: Column, about: str) -> dict[str, Any]:
    return {
        "name": column.name,
        "description": f"{column.name.replace('_', ' ').capitalize()} of {about}.",
        "meta": {},
        "data_type": None,
        "constraints": [],
        "quote": None,
        "config": {"meta": {}, "tags": []},
        "tags": [],
        "granularity": None,
        "doc_blocks": [],
    }


def _config(materialized: str) -> dict[str, Any]:
    return {
        "enabled": True,
        "alias": None,
        "schema": None,
        "database": None,
        "tags": [],
        "meta": {},
        "group": None,
        "materialized": materialized,
        "incremental_strategy": "merge" if materialized == "incremental" else None,
        "batch_size": None,
        "lookback": 1,
        "begin": None,
        "persist_docs": {},
        "post-hook": [],
        "pre-hook": [],
        "quoting": {},
        "column_types": {},
        "full_refresh": None,
        "unique_key": None,
        "on_schema_change": "ignore",
        "on_configuration_change": "apply",
        "grants": {},
        "packages": [],
        "docs": _DOCS,
        "contract": {"enforced": False, "alias_types": True},
        "event_time": None,
        "concurrent_batches": None,
        "access": "protected",
        "freshness": None,
    }


def _node(unique_id: str, kind: str, name: str, path: str, adapter: str) -> dict[str, Any]:
    return {
        "database": CATALOG if adapter == "databricks" else None,
        "schema": "",
        "name": name,
        "resource_type": kind,
        "package_name": PROJECT,
        "path": path,
        "original_file_path": f"models/{path}",
        "unique_id": unique_id,
        "fqn": [PROJECT, *path.removesuffix(".sql").split("/")],
        "alias": name,
        "checksum": {"name": "sha256", "checksum": hashlib.sha256(name.encode()).hexdigest()},
        "tags": [],
        "description": "",
        "columns": {},
        "meta": {},
        "group": None,
        "docs": _DOCS,
        "patch_path": None,
        "build_path": None,
        "unrendered_config": {},
        "created_at": _CREATED,
        "language": "sql",
        "metrics": [],
        "functions": [],
        "sources": [],
        "doc_blocks": [],
        "contract": _CONTRACT,
        "extra_ctes_injected": True,
        "extra_ctes": [],
        "compiled": True,
    }


def _model(model: Model, adapter: str) -> dict[str, Any]:
    relation = model.relation
    path = f"{model.folder}/{relation.name}.sql"
    raw = model.sql
    for parent in model.parents:
        raw = raw.replace(parent.reference, parent.jinja)
    if model.materialized == "incremental":
        raw = raw.replace(relation.reference, "{{ this }}")
    entry = _node(relation.unique_id, "model", relation.name, path, adapter)
    # Two columns of three are documented, as in a project that takes care.
    documented = [c for i, c in enumerate(relation.columns) if i % 3 < 2]
    entry |= {
        "schema": relation.schema,
        "config": _config(model.materialized),
        "description": f"One row for each {relation.name.split('_')[-1]}.",
        "columns": {c.name: _column(c, relation.name) for c in documented},
        "patch_path": f"{PROJECT}://models/{model.folder}/_models.yml",
        "unrendered_config": {"materialized": model.materialized},
        "relation_name": relation.reference,
        "raw_code": raw,
        "refs": [
            {"name": p.name, "package": None, "version": None}
            for p in model.parents
            if p.unique_id.startswith("model.")
        ],
        "sources": [
            p.unique_id.split(".")[-2:] for p in model.parents if p.unique_id.startswith("source.")
        ],
        "depends_on": {
            "macros": ["macro.dbt.is_incremental"] if model.materialized == "incremental" else [],
            "nodes": [p.unique_id for p in model.parents],
        },
        "compiled_path": f"target/compiled/{PROJECT}/models/{path}",
        "compiled_code": model.sql,
        "access": "protected",
        "constraints": [],
        "version": None,
        "latest_version": None,
        "deprecation_date": None,
        "primary_key": [relation.columns[0].name],
        "time_spine": None,
    }
    return entry


_TESTS: Final = {
    "not_null": "select {column}\nfrom {relation}\nwhere {column} is null",
    "unique": (
        "select\n    {column} as unique_field,\n    count(*) as n_records\n\nfrom {relation}\n"
        "where {column} is not null\ngroup by {column}\nhaving count(*) > 1"
    ),
    "accepted_values": (
        "with all_values as (\n\n    select\n        {column} as value_field,\n        count(*) as "
        "n_records\n\n    from {relation}\n    group by {column}\n\n)\n\nselect *\nfrom all_values\n"
        "where value_field not in (\n    'new','open','closed'\n)"
    ),
}


def _tests(
    rng: random.Random, model: Model, per_model: float, adapter: str
) -> list[dict[str, Any]]:
    relation = model.relation
    tests = []
    count = int(per_model) + (rng.random() < per_model % 1)
    for i in range(count):
        kind = ("not_null", "unique", "accepted_values")[i % 3]
        column = relation.columns[0 if i < 2 else rng.randrange(len(relation.columns))]
        if kind == "accepted_values" and column.kind != "str":
            kind = "not_null"
        name = f"{kind}_{relation.name}_{column.name}"
        if i >= 3:
            name += f"_{i}"
        unique_id = f"test.{PROJECT}.{name}.{hashlib.md5(name.encode()).hexdigest()[:10]}"
        entry = _node(unique_id, "test", name, f"{name}.sql", adapter)
        entry |= {
            "schema": "dbt_test__audit",
            "config": {
                "enabled": True,
                "alias": None,
                "schema": "dbt_test__audit",
                "database": None,
                "tags": [],
                "meta": {},
                "group": None,
                "materialized": "test",
                "severity": "ERROR",
                "store_failures": None,
                "store_failures_as": None,
                "where": None,
                "limit": None,
                "fail_calc": "count(*)",
                "warn_if": "!= 0",
                "error_if": "!= 0",
            },
            "original_file_path": f"models/{model.folder}/_models.yml",
            "relation_name": None,
            "raw_code": f"{{{{ test_{kind}(**_dbt_generic_test_kwargs) }}}}",
            "refs": [{"name": relation.name, "package": None, "version": None}],
            "depends_on": {
                "macros": [f"macro.dbt.test_{kind}", "macro.dbt.get_where_subquery"],
                "nodes": [relation.unique_id],
            },
            "compiled_path": f"target/compiled/{PROJECT}/models/{model.folder}/{name}.sql",
            "compiled_code": _TESTS[kind].format(column=column.name, relation=relation.reference),
            "column_name": column.name,
            "file_key_name": f"models.{relation.name}",
            "attached_node": relation.unique_id,
            "test_metadata": {
                "name": kind,
                "kwargs": {
                    "column_name": column.name,
                    "model": f"{{{{ get_where_subquery(ref('{relation.name}')) }}}}",
                }
                | ({"values": ["new", "open", "closed"]} if kind == "accepted_values" else {}),
                "namespace": None,
            },
        }
        tests.append(entry)
    return tests


def _source(source: Relation, adapter: str) -> dict[str, Any]:
    system = source.unique_id.split(".")[2]
    # Sources are documented by halves.
    documented = source.columns[: len(source.columns) // 2]
    return {
        "database": CATALOG if adapter == "databricks" else None,
        "schema": source.schema,
        "name": source.name,
        "resource_type": "source",
        "package_name": PROJECT,
        "path": f"models/staging/{system}/_sources.yml",
        "original_file_path": f"models/staging/{system}/_sources.yml",
        "unique_id": source.unique_id,
        "fqn": [PROJECT, "staging", system, system, source.name],
        "source_name": system,
        "source_description": "",
        "loader": "",
        "identifier": source.name,
        "quoting": {"database": None, "schema": None, "identifier": None, "column": None},
        "loaded_at_field": "_loaded_at",
        "loaded_at_query": None,
        "freshness": None,
        "external": None,
        "description": "",
        "columns": {c.name: _column(c, source.name) for c in documented},
        "meta": {},
        "source_meta": {},
        "tags": [],
        "config": {"enabled": True, "event_time": None, "meta": {}, "tags": []},
        "patch_path": None,
        "unrendered_config": {},
        "relation_name": source.reference,
        "created_at": _CREATED,
        "unrendered_database": None,
        "unrendered_schema": None,
        "doc_blocks": [],
    }


_MACRO_COUNT: Final = 500
"""As many as dbt and an adapter bring along."""

PACKAGES: Final = {OBSERVER: 1_000, UPLOADER: 200}
"""Packages, and how many macros each has."""

_HOOKS: Final = (
    "grant select on {{ this }} to reporter",
    "analyze table {{ this }} compute statistics",
    "{% if target.name == 'prod' %}optimize {{ this }}{% endif %}",
    "delete from {{ this }} where {{ observer.setting('expired', '1 = 0') }}",
    "{{ observer.load_seed('models', this.name ~ '.csv') }}",
)
_SEEDS: Final = 0.15
"""Seeds for each model: lists of codes, which a hook fills from a bucket."""


def _macro(package: str, name: str, sql: str, calls: Iterable[str] = ()) -> dict[str, Any]:
    return {
        "name": name,
        "resource_type": "macro",
        "package_name": package,
        "path": f"macros/{name}.sql",
        "original_file_path": f"macros/{name}.sql",
        "unique_id": f"macro.{package}.{name}",
        "macro_sql": sql,
        "depends_on": {"macros": [f"macro.{package}.{called}" for called in calls]},
        "description": "",
        "meta": {},
        "config": {"meta": {}, "docs": _DOCS},
        "docs": _DOCS,
        "patch_path": None,
        "arguments": [],
        "created_at": _CREATED,
        "supported_languages": None,
    }


def _macros() -> Iterator[dict[str, Any]]:
    rng = random.Random("macros")
    named = ["is_incremental", "get_where_subquery", *(f"test_{t}" for t in _TESTS)]
    named += [f"macro_{i:03}" for i in range(_MACRO_COUNT - len(named))]
    for name in named:
        lines = "\n".join(
            f"    {{%- set {rng.choice(_STRINGS)} = {rng.choice(_NUMBERS)} -%}}"
            for _ in range(rng.randint(4, 30))
        )
        yield _macro("dbt", name, f"{{% macro {name}() %}}\n{lines}\n{{% endmacro %}}")
    for package, count in PACKAGES.items():
        for made in made_packages.macros(package, count):
            yield _macro(package, *made)


def _with_jinja(entry: dict[str, Any], at: int) -> dict[str, Any]:
    """The node as real projects have it: a setting of a package in two of three, a hook in some."""
    if entry["resource_type"] == "seed" or at % 12 == 0:
        hook = _HOOKS[at // 12 % len(_HOOKS)]
        if entry["resource_type"] == "seed":
            hook = f"{{{{ observer.load_seed('codes', '{entry['name']}.csv') }}}}"
        sql = {"sql": hook, "transaction": True, "index": None}
        entry["config"] = entry["config"] | {"post-hook": [sql]}
    if entry["resource_type"] == "model" and at % 3:
        getter = _GETTERS[at % len(_GETTERS)]
        entry["raw_code"] = f"{{%- set limit = observer.{getter}() -%}}\n{entry['raw_code']}"
    texts = [entry["raw_code"], *(hook["sql"] for hook in entry["config"]["post-hook"])]
    called = sorted(set(_OF_PACKAGE.findall(" ".join(texts))))
    entry["depends_on"]["macros"] += [f"macro.{package}.{name}" for package, name in called]
    return entry


_GETTERS: Final = sorted(
    m.name for m in made_packages.macros(OBSERVER, PACKAGES[OBSERVER]) if m.name.startswith("get_")
)
_OF_PACKAGE: Final = re.compile(rf"\b({'|'.join(PACKAGES)})\.(\w+)")


def _operations(adapter: str) -> Iterator[dict[str, Any]]:
    """Hooks of the run: those that the observer brings along, and the project's own."""
    for package, when, call in (
        (OBSERVER, "start", "on_run_start()"),
        (OBSERVER, "end", "on_run_end()"),
        (UPLOADER, "end", "upload_all(results)"),
    ):
        owner = PROJECT if package == UPLOADER else package
        name = f"{owner}-on-run-{when}-0"
        entry = _node(f"operation.{owner}.{name}", "operation", name, f"hooks/{name}.sql", adapter)
        entry |= {
            "package_name": owner,
            "original_file_path": "./dbt_project.yml",
            "tags": [f"on-run-{when}"],
            "config": _config("view"),
            "relation_name": None,
            "raw_code": f"{{{{ {package}.{call} }}}}",
            "compiled_code": "",
            "refs": [],
            "depends_on": {"macros": [], "nodes": []},
            "index": 0,
        }
        yield _with_jinja(entry, 1)


def _table_of_package(table: str, adapter: str) -> tuple[Relation, dict[str, Any]]:
    """A table that the observer fills by a hook, and that nothing of the project reads."""
    name = f"{OBSERVER}_{table}"
    prefix = f"{CATALOG}." if adapter == "databricks" else ""
    columns = [Column(column, "str") for column in made_packages.COLUMNS]
    unique_id, reference = f"model.{OBSERVER}.{name}", f"{prefix}{OBSERVER}.{name}"
    relation = Relation(unique_id, name, OBSERVER, reference, "", columns, depth=1)
    listed = ",\n    ".join(f"cast(null as string) as {column.name}" for column in columns)
    model = Model(relation, f"select\n    {listed}\nwhere 1 = 0", [], OBSERVER, "incremental")
    entry = _model(model, adapter) | {"package_name": OBSERVER}
    hooks = made_packages.hooks_of(OBSERVER, table)
    entry["config"]["post-hook"] = [{"sql": h, "transaction": True, "index": None} for h in hooks]
    return relation, _with_jinja(entry, 1)


def _seed(at: int, adapter: str, folder: Path) -> tuple[Relation, dict[str, Any]]:
    """A list of codes: its file has a few of its rows, a hook brings the rest."""
    name = f"{_ENTITIES[at % len(_ENTITIES)]}_codes_{at}"
    prefix = f"{CATALOG}." if adapter == "databricks" else ""
    columns = [Column("code", "str"), Column("label", "str"), Column("valid_from", "date")]
    relation = Relation(
        f"seed.{PROJECT}.{name}", name, "codes", f"{prefix}codes.{name}", "", columns
    )
    lines = [
        ",".join(c.name for c in columns),
        *(f"c{n},label {n},2024-01-0{n}" for n in (1, 2, 3)),
    ]
    file = folder / "seeds" / f"{name}.csv"
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    entry = _node(relation.unique_id, "seed", name, f"{name}.csv", adapter)
    entry |= {
        "checksum": {"name": "sha256", "checksum": hashlib.sha256(file.read_bytes()).hexdigest()},
        "schema": relation.schema,
        "original_file_path": f"seeds/{name}.csv",
        "config": _config("seed") | {"column_types": {"code": "string"}, "quote_columns": None},
        "relation_name": relation.reference,
        "raw_code": "",
        "root_path": None,  # one seed writes the same bytes into any folder
        "depends_on": {"macros": [], "nodes": []},
    }
    return relation, _with_jinja(entry, at)


def _catalog_entry(relation: Relation, adapter: str) -> dict[str, Any]:
    return {
        "metadata": {
            "type": "table",
            "schema": relation.schema,
            "name": relation.name,
            "database": CATALOG if adapter == "databricks" else None,
            "comment": None,
            "owner": "bench",
        },
        "columns": {
            c.name: {"type": TYPES[c.kind], "index": i + 1, "name": c.name, "comment": None}
            for i, c in enumerate(relation.columns)
        },
        "stats": {
            "has_stats": {
                "id": "has_stats",
                "label": "Has Stats?",
                "value": False,
                "include": False,
                "description": "",
            }
        },
        "unique_id": relation.unique_id,
    }


def main() -> None:
    """The command line: ``python bench/generate.py --help``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write manifest.json and catalog.json")
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--adapter", choices=ADAPTERS, default="databricks")
    parser.add_argument("--shape", choices=SHAPES, default="project")
    parser.add_argument("--tests-per-model", type=float, default=1.5)
    given = parser.parse_args()
    started = time.perf_counter()
    done = generate(
        given.folder,
        given.models,
        seed=given.seed,
        adapter=given.adapter,
        shape=given.shape,
        tests_per_model=given.tests_per_model,
    )
    print(
        f"{done.models:,} models of {done.sql_bytes / max(done.models, 1) / 1024:.1f} KB SQL, "
        f"{done.columns:,} columns, {done.sources:,} sources, {done.tests:,} tests, depth "
        f"{done.depth}; manifest {done.manifest_bytes / 1e6:.1f} MB in "
        f"{time.perf_counter() - started:.1f} s"
    )


if __name__ == "__main__":
    main()
