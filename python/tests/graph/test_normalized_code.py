"""Code is compared by the rules of its own language."""

from __future__ import annotations

import pytest

from dbt_ripple.graph.normalized_code import same_program, type_text

MODEL = """
def model(dbt, session):
    df = dbt.ref("orders").df()  # all of them
    for name in ("a", "b"):
        df[name] = df[name] // 2
    return df
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// 2", "// 3"),
        ("// 2", "/ 2"),
        ("    return df", "        return df"),
        ('"b"', '"b  "'),
        ('"a", "b"', '"b", "a"'),
        ("# all of them", ".head(3)"),
    ],
)
def test_another_program(old: str, new: str) -> None:
    assert old in MODEL
    assert same_program(MODEL) != same_program(MODEL.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# all of them", "# each // of -- them"),
        ("df[name] // 2", "( df[name]//2 )"),
        ('"orders"', "'orders'"),
        ("    ", "  "),
    ],
)
def test_the_same_program(old: str, new: str) -> None:
    assert old in MODEL
    assert same_program(MODEL) == same_program(MODEL.replace(old, new))


def test_what_is_no_python_is_plain_text() -> None:
    assert same_program("def model(:  x") != same_program("def model(: x")


def test_the_case_of_a_type_is_data_in_quotes_only() -> None:
    assert type_text("Enum('A')") == type_text("ENUM('A')") != type_text("enum('a')")
    assert type_text("decimal(10,\n 2)") == type_text("DECIMAL(10,  2)")
