"""Every JSON document has a schema_version and keeps to the published schema of its command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from cli_shell import Shell
from two_sides import FROM_RAW, NOT_NEGATIVE, STG, UNIQUE, V2, Sides

from dbt_ripple.cli.schema import _WITH_JSON
from dbt_ripple.rendering.json_documents import DOCUMENTS, schema
from dbt_ripple.rendering.output import as_document

PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas"


def valid(command: str, document: Any) -> Any:
    """The document, after the schema of its command has been asked."""
    assert next(iter(document)) == "schema_version"
    jsonschema.Draft202012Validator(schema(command)).validate(document)
    return document


def gone(manifest: dict[str, Any]) -> None:
    del manifest["nodes"]["model.shop.time_spine"]


EDITS: dict[str, Any] = {
    "nothing": None,
    "an expression": FROM_RAW.replace("amount,", "amount * 2 as amount,"),
    "rows": f"{FROM_RAW} where amount < 100",
    "a rename": FROM_RAW.replace("amount, ", "amount as total, "),
    "a removal": FROM_RAW.replace("amount, ", ""),
    "a new column": FROM_RAW.replace("amount, ", "amount, 1 as one, "),
    "another order": FROM_RAW.replace("order_id, customer_id", "customer_id, order_id"),
    "the same in other words": f"with t as ({FROM_RAW}) select * from t",
    "no SQL at all": "selec order_id from",
    "a star": "select * from raw.raw_orders",
    "a model that came": ("state/manifest.json", gone),
    "a model that is gone": ("target/manifest.json", gone),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("passed", [False, True], ids=["", "passed"])
def test_what_two_sides_are_compared_by(sides: Sides, edit: str, passed: bool) -> None:
    if passed:
        sides.passed()
    if isinstance(EDITS[edit], str):
        sides.write_sql(STG, EDITS[edit])
    elif EDITS[edit]:
        file, change = EDITS[edit]
        sides.edit(change, file)
    json_ = ("--format", "json")
    for flags in ((), ("--no-facts",), ("--full",)):
        valid("select", sides("select", *flags, *json_).json)
    valid("diff", sides("diff", *json_).json)
    for test in (NOT_NEGATIVE, UNIQUE, "amounts_are_summed", "source_not_null"):
        valid("explain", sides("explain", test, *json_).json)
    for flags in ((), ("--with", "select")):
        judged = valid("gate", sides("gate", *flags, *json_).json)
    assert judged["selection"]["counts"] == sides("select", *json_).json["counts"]
    wanted = ["model.shop.time_spine"] if edit == "a model that is gone" else []
    assert judged["removed"] == wanted


@pytest.mark.parametrize(
    "arguments",
    [
        ("analyze",),
        ("trace", "stg_orders"),
        ("trace", "stg_orders", "--include-tests", "--direction", "both", "--depth", "1"),
        ("trace", "stg_orders.amount"),
        ("trace", "stg_orders.amount", "--include-tests", "--direction", "both"),
        ("trace", "raw.orders", "--direction", "upstream"),
        ("impact", "stg_orders", "--rename", "amount:total", "--drop", "order_id"),
        ("impact", "stg_orders", "--retype", "amount:varchar"),
        ("impact", V2, "--deprecate"),
        ("impact", "time_spine", "--deprecate"),
    ],
    ids=" ".join,
)
def test_what_one_side_tells(shell: Shell, arguments: tuple[str, ...]) -> None:
    valid(arguments[0], shell(*arguments, "--format", "json").json)


def test_what_is_loaded_and_built() -> None:
    pytest.importorskip("dbt_ripple.cli.load")
    from dbt_ripple.cli.load import document

    for depth in (None, 3):
        loaded = SimpleNamespace(snapshot_id="a", already=False, rows={"nodes": 3})
        given_document = document(loaded, SimpleNamespace(closure_depth=depth), "s", {"read": 0.1})  # type: ignore[arg-type]
        valid("load", json.loads("".join(as_document(given_document))))
        valid("build", json.loads("".join(as_document({**given_document, "dbt": {"success": 1}}))))


def test_a_field_that_is_not_listed_or_is_left_out_is_seen(sides: Sides) -> None:
    sides.write_sql(STG, EDITS["an expression"])
    document = sides("select", "--format", "json").json
    for spoil in (
        lambda d: d.update(more=1),
        lambda d: d["tests"][0].update(more=1),
        lambda d: d.pop("models"),
        lambda d: d["tests"][0].pop("reason"),
        lambda d: d.update(schema_version=2),
        lambda d: d["counts"].update(all_tests="3"),
    ):
        spoiled = json.loads(json.dumps(document))
        spoil(spoiled)
        with pytest.raises(jsonschema.ValidationError):
            valid("select", spoiled)


@pytest.mark.parametrize("command", DOCUMENTS)
def test_it_is_published_as_it_is(shell: Shell, command: str) -> None:
    printed = shell("schema", command)
    jsonschema.Draft202012Validator.check_schema(printed.json)
    assert (PUBLISHED / f"{command}.json").read_text() == printed.out, (
        f"dbt-ripple schema {command} > docs/schemas/{command}.json"
    )


def test_every_command_that_prints_json_has_one() -> None:
    from dbt_ripple.cli import COMMANDS, cli

    printing = []
    for name in COMMANDS:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        for option in command.params if command else ():
            if option.name == "style" and "json" in getattr(option.type, "choices", ()):
                printing.append(name)
    assert sorted(printing) == sorted(DOCUMENTS) == sorted(_WITH_JSON)
