"""What a seed's file proves: values that are there, keys, and what is among the keys of another.

Each claim is compared with how dbt's own reader, and DuckDB's, load the file.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import agate
import duckdb
import pytest
from dbt_common.clients import agate_helper
from hand_made import check, macro, node, project

from dbt_ripple.artifacts import Node, Project, RunResult
from dbt_ripple.graph.linking.proven_constraints import proved_columns
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.selection.select import select

NULLS = "select {0} from s.{1} where {0} is null"
TWICE = (
    "select {0}, count(*) as n from s.{1} where {0} is not null group by {0} having count(*) > 1"
)
ORPHANS = (
    "with child as (select {0} as f from s.{1} where {0} is not null), "
    "parent as (select {2} as t from s.{3}) "
    "select f from child left join parent on child.f = parent.t where parent.t is null"
)
ORDERS = "id,customer,paid\nord-a,cus-b,1\nord-b,cus-a,2\n"
CUSTOMERS = "id,name\ncus-a,Ann\ncus-b,Bob\n"
RENAMED = CUSTOMERS.replace("Ann", "Anne") + "cus-z,Zoe\n"


def seed(root: Path, name: str, text: str, **config: Any) -> Node:
    (root / "seeds").mkdir(parents=True, exist_ok=True)
    (root / "seeds" / f"{name}.csv").write_text(text, encoding="utf-8")
    return node(
        f"seed.p.{name}",
        config=config,
        root_path=str(root),
        original_file_path=f"seeds/{name}.csv",
        checksum={"name": "sha256", "checksum": hashlib.sha256(text.strip().encode()).hexdigest()},
    )


def shop(
    root: Path, orders: str, customers: str = CUSTOMERS, built: str = "table", **config: Any
) -> Project:
    """Two seeds, a model of each, and tests of their keys; all passed."""
    model = {"materialized": built}
    made = project(
        seed(root, "raw_orders", orders, **config),
        seed(root, "raw_customers", customers),
        node(
            "model.p.orders",
            "select id as order_id, customer as customer_id from s.raw_orders",
            "seed.p.raw_orders",
            config=model,
        ),
        node(
            "model.p.customers",
            "select id as customer_id, name from s.raw_customers",
            "seed.p.raw_customers",
            config=model,
        ),
        check("whole", NULLS.format("order_id", "orders"), "model.p.orders"),
        check("key", TWICE.format("order_id", "orders"), "model.p.orders"),
        check(
            "related",
            ORPHANS.format("customer_id", "orders", "customer_id", "customers"),
            "model.p.orders",
            "model.p.customers",
        ),
    )
    return made.having(
        run_results=[
            RunResult(unique_id=u, status="pass", failures=0)
            for u in made.nodes
            if u.startswith("test")
        ]
    )


def proven(base: Project, head: Project, **options: Any) -> set[str]:
    return {test.unique_id.rpartition(".")[2] for test in select(base, head, **options).proven}


MORE = ORDERS + "ord-c,cus-a,3\n"


@pytest.mark.parametrize(
    ("orders", "proved"),
    [
        (MORE, {"whole", "key", "related"}),
        (ORDERS + "ord-b,cus-a,3\n", {"whole", "related"}),
        (ORDERS + "ORD-B,cus-a,3\n", {"whole", "related"}),  # under a collation it is the same
        (ORDERS + "ord-b ,cus-a,3\n", {"whole", "related"}),
        (ORDERS + ",cus-a,3\n", {"related"}),
        (ORDERS + "null,cus-a,3\n", {"related"}),
        (ORDERS + "ord-c,cus-c,3\n", {"whole", "key"}),
        (ORDERS + "ord-c,CUS-A,3\n", {"whole", "key"}),
        (ORDERS + "ord-c,cus-a\n", set()),  # nobody knows which columns those are
        ("id,customer,paid\n1,cus-a,1\n2,cus-b,1\n", {"whole", "key", "related"}),
        ("id,customer,paid\n1,cus-a,1\n01,cus-b,1\n", {"related"}),
        ("id,customer,paid\n1.0,cus-a,1\n1,cus-b,1\n", {"related"}),
    ],
)
def test_a_test_that_the_files_of_seeds_answer_is_held(
    tmp_path: Path, orders: str, proved: set[str]
) -> None:
    base, head = shop(tmp_path / "base", ORDERS), shop(tmp_path / "head", orders, RENAMED)
    assert proven(base, head) == proved
    for result in base.run_results:  # none has to have run on base
        result.status = "skipped" if "key" not in result.unique_id else result.status
    assert proven(base, head) == proved
    for result in base.run_results:
        result.status = "fail" if "key" not in result.unique_id else result.status
    assert proven(base, head) == proved & {"key"}


def test_what_the_file_says_is_not_asked_of_what_is_not_loaded_from_it(tmp_path: Path) -> None:
    def sides(name: str, **config: Any) -> tuple[Project, Project]:
        base = shop(tmp_path / f"base of {name}", ORDERS, **config)
        return base, shop(tmp_path / f"head of {name}", MORE, RENAMED, **config)

    base, head = sides("all")
    assert len(proven(base, head)) == 3
    assert proven(base, head, only={*head.nodes} - {"seed.p.raw_orders"}) == set()
    assert proven(base, head, only={*head.nodes} - {"seed.p.raw_customers"}) == {"whole", "key"}
    hook = "insert into s.raw_orders select * from s.raw_orders"
    assert proven(*sides("a hook", **{"post-hook": [{"sql": hook}]})) == set()
    assert proven(*sides("a type", column_types={"id": "varchar(4)"})) == {"related"}


def test_a_view_is_seen_to_be_read_by_a_test_or_by_a_table_of_it(tmp_path: Path) -> None:
    sides = [
        shop(tmp_path / "base", ORDERS, built="view"),
        shop(tmp_path / "head", MORE, built="view"),
    ]
    for sql, count in (
        ("", 1),
        ("select customer_id from s.orders", 1),
        ("select order_id from s.orders where customer_id <> 'x'", 1),
        ("select case when customer_id <> 'x' then order_id end as order_id from s.orders", 1),
        ("select order_id as id, customer_id from s.orders", 2),
    ):
        for side in sides:
            side.nodes.pop("test.p.related", None)
            if sql:
                side.nodes["model.p.below"] = node("model.p.below", sql, "model.p.orders")
        again = [project(*side.nodes.values()) for side in sides]
        base = again[0].having(run_results=sides[0].run_results)
        assert (
            len(proven(base, again[1])) == count
        )  # of two; without the table one of them has to run


VALUES = (
    *(
        "1",
        "01",
        "-1",
        "0",
        "-0",
        "+1",
        "1.0",
        "1e5",
        "12345678901234567",
        "tea",
        "Tea",
        "tea ",
        "",
    ),
    *(
        "null",
        "None",
        "true",
        "2026-01-01",
        "2026-1-1",
        "Jan 1 2026",
        "1 Jan 2026",
        "nan",
        "a1b2c3",
    ),
    *(
        "20260101",
        "2",
        "3",
        "cup",
        "pot",
        "é",
        "É",
        "n/a",
        "0x10",
        "10:30",
        "2026-01-01 00:00:00 UTC",
    ),
)


def test_what_is_claimed_of_a_column_holds_as_it_is_loaded(tmp_path: Path) -> None:
    rng = random.Random(7)
    claimed = {"whole": 0, "unique": 0, "among": 0}
    for _ in range(150):
        of_one_kind = rng.choice([VALUES, ("1", "2", "3", "-1", "0", "20260101"), VALUES[9:13]])
        columns = [
            rng.choices(of_one_kind, k=3) if rng.random() < 0.5 else rng.sample(of_one_kind, 3)
            for _ in range(2)
        ]
        if rng.random() < 0.3:
            columns[1] = rng.sample(columns[0], 3)
        text = "a,b\n" + "".join(f'"{a}","{b}"\n' for a, b in zip(*columns, strict=True))
        made = seed(tmp_path, "s", text)
        proved = proved_columns(SeedFiles(), made)
        file = tmp_path / "seeds" / "s.csv"
        table = agate_helper.from_csv(file, text_columns=(), delimiter=",")
        by_dbt = {c.name: (type(c.data_type).__name__, list(c)) for c in table.columns}
        with duckdb.connect() as connection:
            try:
                connection.execute(f"create table t as from read_csv('{file}', header=true)")
            except duckdb.Error:
                continue  # it is not loaded at all
            loaded = connection.execute("select a, b from t").fetchall()
        by_duckdb = {n: ("", [row[i] for row in loaded]) for i, n in enumerate("ab")}
        for kinds in (by_dbt, by_duckdb):
            for name, column in proved.items():
                values = kinds[name][1]
                if column.whole:
                    claimed["whole"] += 1
                    assert None not in values, (text, name)
                if column.unique:
                    claimed["unique"] += 1
                    assert len({str(v).lower().strip() for v in values}) == 3, (text, name)
            a, b = proved.get("a"), proved.get("b")
            if a and b and a.values and b.values and a.values <= b.values:
                same_type = len({type(v) for n in "ab" for v in kinds[n][1]}) == 1
                if same_type:  # joins of two types prove nothing anyway
                    claimed["among"] += 1
                    assert set(kinds["a"][1]) <= set(kinds["b"][1]), text
    assert min(claimed.values()) > 10


WRITTEN = {
    "integer": ("1", "-7", "20260101", "0"),
    "long": ("12345678901", "98765432109"),
    "fraction": ("1.5", "0.25", "-3.75"),
    "zeros": ("1.0", "2.00", "0.0"),
    "date": ("2026-01-01", "1999-12-31"),
    "moment": ("2026-01-01 10:00:00", "1999-12-31 23:59:59"),
    "millis": ("2026-01-01 10:00:00.123", "1999-12-31 23:59:59.999"),
    "truth": ("true",),
    "nothing": ("",),
    "word": ("tea", "cup of 7"),
    "wrong date": ("2026-13-01",),
    "leading": ("007",),
}


def test_columns_whose_values_are_written_alike_are_loaded_as_one_type(tmp_path: Path) -> None:
    rng = random.Random(3)
    seen: dict[bytes, set[str]] = {}
    for _ in range(400):
        kinds = rng.sample(sorted(WRITTEN), rng.choice([1, 1, 2, 3]))
        values = [rng.choice(WRITTEN[k]) for k in kinds for _once in range(rng.choice([1, 3]))]
        made = seed(tmp_path, "s", "a,z\n" + "".join(f"{v},x\n" for v in values))
        file = SeedFiles().read(made)
        assert file is not None
        table = agate_helper.from_csv(tmp_path / "seeds" / "s.csv", text_columns=(), delimiter=",")
        column = table.columns["a"]
        loaded = type(column.data_type).__name__
        if loaded == "Number":  # what dbt makes of it: a whole number, or not
            loaded += str(table.aggregate(agate.MaxPrecision("a")) > 0)
        seen.setdefault(file.shapes[0], set()).add(loaded)
    assert len(seen) > 60
    assert [types for types in seen.values() if len(types) > 1] == []


def test_what_asks_for_types_does_not_move_with_the_values_of_a_seed(tmp_path: Path) -> None:
    typed = macro(
        "macro.p.typed",
        "{% for c in adapter.get_columns_in_relation(x) %}{{ c.dtype }}{% endfor %}",
    )

    def side(name: str, text: str, adapter: str = "duckdb", **config: Any) -> Project:
        return project(
            seed(tmp_path / name, "raw", text, **config),
            node(
                "model.p.a",
                "select k, v from s.raw",
                "seed.p.raw",
                raw="{{ typed(ref('raw')) }}",
                macros=[typed.unique_id],
            ),
            check("of_k", "select k from s.a where k is null", "model.p.a"),
            macros=[typed],
            adapter=adapter,
        )

    then = "k,v\na,1\nb,2\n"
    for now, moved in ((then.replace("2", "3"), 0), (then.replace("2", "2.5"), 1)):
        base, head = side("base", then), side("head", now)
        assert len(select(base, head, facts=False).tests) == moved
    longer = then.replace("b,2", "b,234567890123")
    assert len(select(side("base", then), side("head", longer), facts=False).tests) == 1
    unsure = [side(n, t, adapter="redshift") for n, t in (("base", then), ("head", now))]
    assert len(select(*unsure, facts=False).tests) == 1


def test_what_is_missing_names_the_hook_that_is_not_as_it_was(tmp_path: Path) -> None:
    def side(name: str, limit: int) -> Project:
        made = shop(tmp_path / name, ORDERS)
        sql = f"insert into s.orders select 'x', 'y' limit {limit}"
        made.nodes["model.p.orders"].config["post-hook"] = [{"sql": sql}]
        return made

    selection = select(side("base", 1), side("head", 2))
    assert [test.name for test in selection.tests] == ["whole", "key", "related"]
    reasons = {str(test.not_proven) for test in selection.tests}
    assert reasons == {"a hook of orders changed, and may write any row"}
