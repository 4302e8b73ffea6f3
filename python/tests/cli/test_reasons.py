"""Reasons are values: only `dbt_ripple.reasons` makes sentences, and nothing reads one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dbt_ripple.reasons import Code, Reason, names_missing, several
from dbt_ripple.rendering.output import plain

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "python" / "dbt_ripple"
TABLE = ROOT / "docs" / "reasons.md"

FIELDS = {"broken", "message", "not_proven", "reason", "sentence", "why"}
"""Attributes that hold a reason, or the sentence of one."""

READS_TEXT = {name for name in dir(str) if not name.startswith("_")}
"""What is done to text, and to no value."""

MODULES = [p for p in PACKAGE.rglob("*.py") if p.name != "reasons.py" or p.parent != PACKAGE]


def is_text(node: ast.AST) -> bool:
    """Whether an expression is a sentence: a reason's, as text or in text."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return any(isinstance(part, ast.Attribute) and part.attr in FIELDS for part in node.args)
    if isinstance(node, ast.BoolOp):
        return any(map(is_text, node.values))
    return isinstance(node, ast.Attribute) and node.attr == "message"


def is_reason(node: ast.AST) -> bool:
    if isinstance(node, ast.BoolOp):
        return any(map(is_reason, node.values))
    return isinstance(node, ast.Attribute) and node.attr in FIELDS


def is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def readings(tree: ast.AST) -> list[int]:
    """The lines where a sentence is compared, searched or cut."""
    line_numbers = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of, method = node.func.value, node.func.attr
            cut = method in READS_TEXT and (is_text(of) or is_reason(of))
            searched = isinstance(of, ast.Name) and of.id == "re" and any(map(is_text, node.args))
            if cut or searched:
                line_numbers.append(node.lineno)
        elif isinstance(node, ast.Subscript) and is_text(node.value):
            line_numbers.append(node.lineno)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(is_text, sides)) or (
                any(map(is_reason, sides)) and any(map(is_words, sides))
            ):
                line_numbers.append(node.lineno)
    return line_numbers


@pytest.mark.parametrize(
    "code",
    [
        "seen.reason.startswith('may not build')",
        "(seen.reason or '').startswith('x')",
        "str(seen.reason).split('; ')",
        "note.message.endswith('every test is selected')",
        "'not known' in item.reason",
        "seen.reason == 'is gone'",
        "known.reason == f'on head: {reason}'",
        "tests[0].reason.partition(': ')[2]",
        "re.match('cannot find', finding.reason.message)",
        "finding.message[:3]",
    ],
)
def test_a_sentence_that_is_read_is_found(code: str) -> None:
    assert readings(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "seen.reason != then.reason",
        "reason.code is Code.GONE",
        "warn(note.message)",
        "len(reason.message) <= 120",
        "seen.reason is None",
    ],
)
def test_a_value_that_is_compared_is_not(code: str) -> None:
    assert not readings(ast.parse(code))[1:]


def test_nothing_reads_a_sentence() -> None:
    assert len(MODULES) > 100
    places = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in MODULES
        for line in readings(ast.parse(path.read_text(encoding="utf-8")))
    }
    # The reason of an exception in ripple.yml is what somebody wrote there.
    assert {place.partition(":")[0] for place in places} <= {"governance/ripple_yml.py"}


def test_every_code_is_used_and_each_is_made_of_its_own_arguments() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)
    text += (PACKAGE / "reasons.py").read_text(encoding="utf-8").partition("def several")[2]
    assert {code.name for code in Code} <= set(re.findall(r"\bCode\.([A-Z_]+)\b", text))
    for code in Code:
        assert code.name.lower() == code.value
        with pytest.raises(AssertionError):
            code(**dict.fromkeys(code.arguments(), ""), no_such_argument="")


def test_the_table_in_the_docs_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", TABLE.read_text(encoding="utf-8"), re.M)
    braces = str.maketrans({"\x01": "{", "\x02": "}"})

    def shown(sentence: str) -> str:
        kept = sentence.replace("{{", "\x01").replace("}}", "\x02").translate(braces)
        return kept.replace("|", "\\|")

    assert rows == [(code.value, shown(code.sentence)) for code in Code]


def test_a_reason_in_words_and_in_json() -> None:
    missing = Code.CANNOT_FIND(names=["o.amount", "a b, c"])
    reason = Code.MAY_NOT_BUILD(because=missing)
    assert str(reason) == 'may not build: cannot find o.amount, "a b, c"'
    assert names_missing(reason) == ["o.amount", "a b, c"]
    assert plain(reason) == {
        "code": "may_not_build",
        "arguments": {
            "because": {
                "code": "cannot_find",
                "arguments": {"names": ["o.amount", "a b, c"]},
                "message": 'cannot find o.amount, "a b, c"',
            }
        },
        "message": 'may not build: cannot find o.amount, "a b, c"',
    }


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (Code.SETTINGS_CHANGED(settings=["where", "limit"]), "its own where and limit changed"),
        (Code.HOOKS_MAY_WRITE(names=[*"abcd"]), "hooks of a, b, c, ... may write to it"),
        (Code.REACHES(assets=["a"]), "reaches 1 asset (a)"),
        (Code.REACHES_MORE_THAN(assets=["a"] * 12, most=3), None),
        (Code.WORDS_DROPPED(words=["x", "y"]), "what `x`, `y` means there is not known here"),
        (Code.FACT_RUNS(fact="it holds", tests=["a"]), "it holds, which runs"),
        (Code.FACT_RUNS(fact="it holds", tests=["a", "b"]), "it holds, which run"),
        (Code.COLUMN_GONE(name="a\nb", column="c"), "a\nb.c is gone"),
        (
            several([Code.READS_CATALOG()]),
            "reads the warehouse's catalog, which lists every relation",
        ),
        (several([Code.REMOVED(), Code.REDEFINED()]), "removed; redefined"),
    ],
)
def test_lists_are_written_as_the_sentence_says(reason: Reason, message: str | None) -> None:
    ten = ", ".join("a" * 10)
    assert str(reason) == (message or f"reaches 12 assets, more than 3 ({ten} and 2 more)")
