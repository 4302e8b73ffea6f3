"""The same edits of public projects, alone and beside the packages that shops have: the same tests.

    python python/bench/beside_packages.py CLONES WORK [--project NAME] [--beside NAME] [--edit TEXT]
        [--mode state|base-ref] [--built] [--week]

CLONES is a folder with clones of the projects and packages (see `real_projects`); WORK is where they
are put up, outside of this repository. Each edit is made in each project, alone and with each package
and its hooks, and `select` asked in both modes. It prints a row for each edit: how many of the
project's own tests were selected alone, and beside each package ``same``, or what is different. It
exits with 1 where an answer beside a package differs from the answer alone, or has a note about hooks.

With --week the projects stand alone, the edits are the twelve of somebody's first week (some of them
break a reader), and head is as `dbt parse` leaves it. It exits with 1 where a run has more than one note, or
the modes select other tests.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ordinary_edits import CLASSIC, SHOP, Edit
from real_projects import PROJECTS, RealProject, missing, put_up

ALONE: Final = "alone"
BESIDE: Final = ("elementary", "dbt_artifacts", "dbt_project_evaluator", "dbt_ripple")
MODES: Final = ("state", "base-ref")


def _edits(of: list[Edit], *beginnings: str) -> list[Edit]:
    """Those of `ordinary_edits` that begin like this, each exactly once."""
    found = [[e for e in of if e.what.startswith(b) and not e.breaking] for b in beginnings]
    assert all(len(edits) == 1 for edits in found), [*zip(beginnings, map(len, found), strict=True)]
    return [edits[0] for edits in found]


_ORDERS_SQL = "models/orders.sql"
_CLASSIC: Final = [
    *_edits(
        CLASSIC,
        "rename stg_orders.status, readers with it",
        "edit an expression: cents to dollars",
        "add a filter to stg_orders",
        "add a column to stg_customers",
        "a description",
        "reformat customers",
        "a join of orders from left to inner",
        "a value of a seed",
    ),
    Edit(
        "a new test",
        {
            "models/staging/schema.yml": [
                ("      - name: payment_method\n", "      - name: order_id\n        tests:\n"
                 "          - not_null\n      - name: payment_method\n"),
            ]
        },
    ),
    Edit(
        "a cast: the date of an order",
        {"models/staging/stg_orders.sql": [("        order_date,", "        cast(order_date as timestamp) as order_date,")]},
    ),
    Edit(
        "another default of a var",
        {"models/staging/stg_payments.sql": [("{{ var('cents', 100) }}", "{{ var('cents', 1000) }}")]},
    ),
    Edit(
        "a macro: dollars, rounded",
        {"macros/dollars.sql": [("{{ column }} / ", "1.0 * {{ column }} / ")]},
    ),
]  # fmt: skip
_SHOP: Final = [
    *_edits(
        SHOP,
        "rename stg_products.product_price, readers with it",
        "edit an expression: is_food_item",
        "add a filter to stg_orders",
        "add a column to stg_products",
        "a description",
        "reformat order_items",
        "a join of order_items from left to inner",
        "a value of a seed",
        "a macro: cents_to_dollars, with three digits",
    ),
    Edit(
        "a new test",
        {
            "models/staging/stg_products.yml": [
                ("      - name: product_id\n", "      - name: product_type\n        data_tests:\n"
                 "          - not_null\n      - name: product_id\n"),
            ]
        },
    ),
    Edit(
        "a cast: the date of an order",
        {"models/staging/stg_orders.sql": [("{{ dbt.date_trunc('day','ordered_at') }} as", "cast({{ dbt.date_trunc('day','ordered_at') }} as timestamp) as")]},
    ),
    Edit(
        "another default of a var",
        {"models/staging/stg_products.sql": [("{{ var('drink', 'beverage') }}", "{{ var('drink', 'drink') }}")]},
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Shop:
    """A project, the twelve edits of it, and what base says besides what its repository does.

    Attributes:
        clone: ``owner/name`` of its repository.
        edits: each is made on base, and taken back.
        base: replacements by which the edits' vars and macros come into base.
    """

    clone: str
    edits: list[Edit]
    base: Edit


SHOPS: Final = {
    "jaffle-shop": Shop(
        "dbt-labs/jaffle-shop",
        _SHOP,
        Edit(
            "",
            {
                "dbt_project.yml": [("var('load_source_data', false)", "var('load_source_data', true)")],
                "models/staging/stg_products.sql": [("type = 'beverage'", "type = '{{ var('drink', 'beverage') }}'")],
            },
        ),
    ),
    "jaffle_shop_duckdb": Shop(
        "dbt-labs/jaffle_shop_duckdb",
        _CLASSIC,
        Edit(
            "",
            {
                "macros/dollars.sql": "{% macro dollars(column, cents=100) %}{{ column }} / {{ cents }}{% endmacro %}\n",
                "models/staging/stg_payments.sql": [
                    ("amount / 100 as amount", "amount / 100 as amount,\n        {{ dollars('amount') }} as dollars,"
                     "\n        amount / {{ var('cents', 100) }} as by_var"),
                ],
            },
        ),
    ),
}  # fmt: skip


def _begins(of: list[Edit], beginning: str) -> Edit:
    return next(edit for edit in of if edit.what.startswith(beginning))


def _unit_test(model: str, given: str, row: str, expected: str) -> Edit:
    text = (
        f"unit_tests:\n  - name: cents\n    model: {model}\n    given:\n      - input: {given}\n"
        f"        rows: [{row}]\n    expect:\n      rows: [{expected}]\n"
    )
    return Edit("a unit test", {"models/staging/unit_tests.yml": text})


WEEK: Final = {
    "jaffle-shop": [
        *(_begins(SHOP, b) for b in ("rename", "drop", "add a model", "add a filter")),
        *(_begins(_SHOP, b) for b in ("a value of a seed", "a new test", "a description")),
        *(_begins(_SHOP, b) for b in ("a macro", "another default of a var")),
        Edit("a materialization", {"models/staging/stg_products.sql": [("with\n", "{{ config(materialized='table') }}\nwith\n")]}),
        _begins(SHOP, "rename a header of a seed that a source is read from"),
        _unit_test("stg_products", "source('ecom', 'raw_products')", "{sku: a, price: 100}", "{product_id: a, product_price: 1}"),
    ],
    "jaffle_shop_duckdb": [
        *(_begins(CLASSIC, b) for b in ("rename", "drop stg_payments", "add a model", "add a filter")),
        *(_begins(_CLASSIC, b) for b in ("a value of a seed", "a new test", "a description")),
        *(_begins(_CLASSIC, b) for b in ("a macro", "another default of a var")),
        Edit("a materialization", {"models/staging/stg_orders.sql": [("with source", "{{ config(materialized='table') }}\nwith source")]}),
        Edit("a column renamed at its source", {"seeds/raw_orders.csv": [("user_id", "customer")]}),
        _unit_test("stg_payments", "ref('raw_payments')", "{id: 1, amount: 100}", "{payment_id: 1, amount: 1}"),
    ],
}  # fmt: skip
"""Rename with readers, drop, new model, filter, seed value, test, description, macro, var,
materialization, source column, unit test."""


@dataclass(frozen=True)
class Answer:
    """What `select` says of the project's own tests.

    Attributes:
        tests: unique_ids of the selected ones.
        notes: those that are about hooks.
        seconds: of `select` alone.
        said: every line on stderr.
        failed: the last line of what went wrong instead.
    """

    tests: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    said: tuple[str, ...] = ()
    failed: str = ""

    def beside(self, alone: Answer) -> str:
        """How it differs from the answer without the package; ``same`` where it does not."""
        if self.failed or alone.failed:
            return f"failed: {self.failed or 'alone'}"
        more, less = self.tests - alone.tests, alone.tests - self.tests
        said = [f"+{len(more)}"] * bool(more) + [f"-{len(less)}"] * bool(less)
        said += [f"{len(self.notes)} of hooks"] * bool(self.notes)
        return ", ".join(said) or "same"


class Checkout:
    """One project, put up with what it is beside."""

    def __init__(
        self, name: str, beside: str, clones: Path, work: Path, *, built: bool, parsed: bool = False
    ) -> None:
        shop = SHOPS[name]
        self.name = name
        self._head = "parse" if parsed else "compile"
        self.folder = put_up(_real(name, beside), clones, work, sys.executable)
        self.dbt("git", "checkout", "--quiet", ".")
        make(shop.base, self.folder)
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
        self.dbt("git", "add", "--all")
        self.dbt("git", *who, "commit", "--quiet", "--message", "base with vars")
        bin_ = Path(sys.executable).parent
        self.program, self.ripple = str(bin_ / "dbt"), str(bin_ / "dbt-ripple")
        self.dbt(self.program, "seed", "--quiet", check=False)
        if built:
            self.dbt(self.program, "build", "--quiet", check=False)
        self.dbt(self.program, "compile", "--quiet", "--target-path", "target/base")

    def dbt(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {(done.stdout + done.stderr)[-800:]}")
        return done

    def answers(self, edit: Edit, modes: list[str]) -> Iterator[Answer]:
        """What `select` says of an edit, in each mode; the edit is taken back."""
        make(edit, self.folder)
        try:
            for mode in modes:
                try:
                    yield self._answer(mode)
                except RuntimeError as error:
                    yield Answer(failed=str(error).strip().splitlines()[-1][:200])
        finally:
            self.dbt("git", "checkout", "--quiet", ".")
            self.dbt("git", "clean", "--quiet", "--force", "-d", ".")

    def _answer(self, mode: str) -> Answer:
        if mode == "state":
            self.dbt(self.program, self._head, "--quiet", "--target-path", "target/head")
            arguments = ["--state", "target/base", "--target-path", "target/head"]
        else:
            arguments = ["--base-ref", "HEAD"]
        start = time.perf_counter()
        done = self.dbt(self.ripple, "select", *arguments, "--format", "json")
        said: dict[str, Any] = json.loads(done.stdout)
        own = frozenset(
            t["unique_id"] for t in said["tests"] if t["unique_id"].split(".")[1] in OWN_NAMES
        )
        notes = tuple(n["code"] for n in said["notes_coded"] if _OF_HOOKS.search(n["code"]))
        said_besides = tuple(filter(None, done.stderr.splitlines()))
        return Answer(own, notes, time.perf_counter() - start, said_besides)


_OF_HOOKS: Final = re.compile("hook|may_write")
OWN_NAMES: Final = ("jaffle_shop",)
"""Both projects call themselves so."""


def make(edit: Edit, folder: Path) -> None:
    """Make an edit in a folder; each replacement has to apply exactly once or more."""
    for name, change in edit.files.items():
        file = folder / name
        if change is None:
            file.unlink()
        elif isinstance(change, str):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(change)
        else:
            text = file.read_text()
            for old, new in change:
                assert old in text, f"{edit.what}: {name} has no {old!r}"
                text = text.replace(old, new, 1)
            file.write_text(text)


def _real(name: str, beside: str) -> RealProject:
    """The project with the package's settings, as `real_projects` has them for jaffle-shop."""
    like = "jaffle-shop" if beside == ALONE else f"jaffle-shop + {beside}"
    (found,) = (p for p in PROJECTS if p.name == like)
    if name == "jaffle-shop":
        return found
    edit = ("models/orders.sql", "left join order_payments", "inner join order_payments")
    return replace(
        found, name=like.replace("jaffle-shop", name), clone=SHOPS[name].clone, edit=edit
    )


def week(names: list[str], only: str, clones: Path, work: Path) -> int:
    """Make the edits of a week, and print how many tests and notes each mode has."""
    wrong = 0
    for name in names:
        checkout = Checkout(name, ALONE, clones, work, built=True, parsed=True)
        print(f"\n| {name} | tests | notes | |\n| --- | --- | --- | --- |")
        for edit in (e for e in WEEK[name] if only in e.what):
            answers = [*checkout.answers(edit, [*MODES])]
            state, ref = answers
            bad = [f"failed: {a.failed}" for a in answers if a.failed]
            bad += ["other tests"] * (state.tests != ref.tests)
            bad += [line for a in answers if len(a.said) > 1 for line in a.said]
            wrong += bool(bad)
            notes = " / ".join(str(len(a.said)) for a in answers)
            print(f"| {edit.what} | {len(ref.tests)} | {notes} | {'; '.join(bad)} |", flush=True)
    return 1 if wrong else 0


def main() -> int:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("clones", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--project", choices=[*SHOPS], action="append")
    parser.add_argument("--beside", choices=BESIDE, action="append")
    parser.add_argument("--edit", help="only edits with this in their name")
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--built", action="store_true", help="build base first, not only its seeds")
    parser.add_argument("--week", action="store_true", help="the edits of a first week, alone")
    given = parser.parse_args()
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    clones, work = given.clones.resolve(), given.work.resolve()
    modes = given.mode or [*MODES]
    if given.week:
        return week(given.project or [*SHOPS], given.edit or "", clones, work)
    wrong = 0
    for name in given.project or SHOPS:
        edits = [e for e in SHOPS[name].edits if not given.edit or given.edit in e.what]
        answers: dict[str, list[list[Answer]]] = {}
        for beside in (ALONE, *(given.beside or BESIDE)):
            if lacking := missing(_real(name, beside), clones):
                print(f"{name} beside {beside}: left out, not at hand: {', '.join(lacking)}")
                continue
            checkout = Checkout(name, beside, clones, work, built=given.built)
            answers[beside] = []
            for edit in edits:
                answers[beside].append([*checkout.answers(edit, modes)])
                took = ", ".join(f"{a.seconds:.1f} s" for a in answers[beside][-1])
                print(f"... {name}, {beside}: {edit.what}: {took}", file=sys.stderr, flush=True)
        others = [beside for beside in answers if beside != ALONE]
        print(f"\n| {name} | mode | tests | {' | '.join(others)} |")
        print(f"| --- | --- | --- | {' | '.join('---' for _ in others)} |")
        for i, edit in enumerate(edits):
            for j, mode in enumerate(modes):
                alone = answers[ALONE][i][j]
                cells = [answers[beside][i][j].beside(alone) for beside in others]
                wrong += sum(cell != "same" for cell in cells) + bool(alone.failed)
                tests = alone.failed or str(len(alone.tests))
                print(f"| {edit.what} | {mode} | {tests} | {' | '.join(cells)} |")
    print(f"\n{wrong} answers differ" if wrong else "\nthe same tests everywhere, no note of hooks")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
