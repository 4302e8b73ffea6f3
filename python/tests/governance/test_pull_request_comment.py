"""The comment for a pull request: what a reviewer reads, within what GitHub takes."""

from __future__ import annotations

import pytest
from hand_made import check, macro, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import GateAnswer, gate_from
from dbt_ripple.governance.ripple_yml import Config
from dbt_ripple.rendering.pull_request_comment import LONGEST, comment
from dbt_ripple.selection.result import SelectionRun
from dbt_ripple.selection.select import select_from

pytestmark = pytest.mark.slow

RAW = "source.p.raw"
BASE = "select id, amount, code from s.raw"
OWNED = {"meta": {"owner": "@finance"}}


def world(stg: str, wide: int = 0, marts: int = 1) -> Project:
    columns = "".join(f", amount + {i} as c{i}" for i in range(wide))
    return project(
        node(RAW),
        node("model.p.stg", stg, RAW, meta={"contract_version": 1}),
        *(
            node(
                f"model.p.mart_{i}",
                f"select id, amount{columns} from s.stg",
                "model.p.stg",
                **OWNED,
            )
            for i in range(marts)
        ),
        check("positive", "select * from s.stg where amount < 0", "model.p.stg"),
        check("on_mart", "select * from s.mart_0 where amount < 0", "model.p.mart_0"),
        catalog={RAW: ["id", "amount", "code"]},
    )


def answer_of(
    base: Project, head: Project, ran: SelectionRun | None = None, *, select: bool = True
) -> GateAnswer:
    comparison = compare(base, head)
    report = gate_from(comparison, Config())
    return GateAnswer(report, comparison, select_from(comparison) if select else None, ran)


def comment_of(
    base: Project, head: Project, ran: SelectionRun | None = None, *, select: bool = True
) -> str:
    return "\n".join(comment(answer_of(base, head, ran, select=select)))


RENAMED = world("select id, amount * 2 as total, amount as sum, code || 'x' as code from s.raw")


def test_one_line_says_what_was_decided_and_why() -> None:
    lines = comment_of(world(BASE), RENAMED).splitlines()
    assert lines[0] == "<!-- dbt-ripple gate -->"
    assert lines[1].startswith("### ⛔ BLOCKED: 2 readers broken, 1 promised column renamed")
    lines = comment_of(world(BASE), world(BASE)).splitlines()
    assert lines[1] == "### ✅ APPROVED: nothing changed"
    assert len(lines) < 12


def test_what_changed_has_the_old_and_the_new_expression() -> None:
    text = comment_of(world(BASE), RENAMED)
    changed = text.partition("#### What changed")[2].partition("####")[0]
    assert "`stg` (changed)\n\n```diff\n" in changed
    assert "  total: added\n+ amount * 2\n" in changed
    assert "  sum: renamed from amount\n" in changed
    assert "  code: redefined\n- code\n+ code || 'x'\n" in changed


def test_what_breaks_has_the_rename_and_what_to_do() -> None:
    breaks = comment_of(world(BASE), RENAMED).partition("#### What breaks")[2].partition("####")[0]
    gone = "cannot find amount: stg.amount is gone (renamed to sum)"
    assert f"| block | `mart_0` | {gone} | read `sum` for `amount` |" in breaks
    assert f"| block | `positive` | {gone} | read `sum` for `amount` |" in breaks
    breaks = comment_of(world(BASE), world("select id, code from s.raw"))
    assert "| do without `amount`, or bring it back to `stg` |" in breaks


def test_tests_are_named_where_they_are_asked_for() -> None:
    base, head = world(BASE), world(BASE.replace("amount", "amount * 2 as amount"))
    assert "#### Tests" not in comment_of(base, head, select=False)
    text = comment_of(base, head)
    assert "2 tests to run" in text
    assert "| test | why |\n| --- | --- |\n| `positive` | stg.amount changed |\n" in text


def test_what_they_said_stands_beside_them_failures_first() -> None:
    base, head = world(BASE), world(BASE.replace("amount", "amount * 2 as amount"))
    ran = SelectionRun(
        {"model.p.stg": "success", "test.p.positive": "pass", "test.p.on_mart": "fail"},
        {"test.p.on_mart": "Got 3 results,\nconfigured to fail if != 0"},
        failed=True,
    )
    text = comment_of(base, head, ran)
    assert "1 of 2 tests passed, 1 failed" in text.splitlines()[3]
    rows = [line for line in text.splitlines() if line.startswith(("| `on_mart", "| `positive"))]
    assert rows == [
        "| `on_mart` | stg.amount changed | ❌ fail: Got 3 results, configured to fail if != 0 |",
        "| `positive` | stg.amount changed | ✅ pass |",
    ]


def test_long_lists_are_folded() -> None:
    text = comment_of(world(BASE, marts=30), world("select id, code from s.raw", marts=30))
    assert "<details><summary>31 readers</summary>\n\n|" in text
    assert text.count("<details>") == text.count("</details>")


@pytest.fixture(scope="module")
def large_answers() -> list[GateAnswer]:
    """Of two edits with hundreds of columns below them: of a value, and of what is selected, too."""
    base, head = world(BASE, 20, 40), world(BASE.replace("amount", "amount * 2 as amount"), 20, 40)
    edited = world(BASE.replace("amount", "-amount as amount"), 60, 40)
    return [answer_of(base, side) for side in (head, edited)]


@pytest.mark.parametrize("longest", [LONGEST, 20_000, 6_000])
def test_it_stays_below_what_github_takes_and_counts_what_is_left_out(
    large_answers: list[GateAnswer], longest: int
) -> None:
    for answer in large_answers:
        text = "\n".join(comment(answer, longest=longest))
        assert len(text.encode()) <= longest
        assert text.count("<details>") == text.count("</details>")
        assert text.startswith("<!-- dbt-ripple gate -->\n### ")
    assert " more; `--format json` has them all" in text
    assert "```mermaid\nflowchart LR\n" in text


def test_names_are_names() -> None:
    hostile = "a`|<!--@all-->\n# *x*"
    base = world(BASE)
    base.nodes["model.p.stg"] = replace(base.nodes["model.p.stg"], name=hostile)
    head = world(BASE.replace("amount", "amount * 2 as amount"))
    head.nodes["model.p.stg"] = replace(head.nodes["model.p.stg"], name=hostile)
    from markdown_it import MarkdownIt

    def headings(text: str) -> list[str]:
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        return [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open"]

    text = comment_of(base, head)
    plain = comment_of(world(BASE), world(BASE.replace("amount", "amount * 2 as amount")))
    assert headings(text) == headings(plain)
    html = [
        part.content
        for token in MarkdownIt("commonmark").enable("table").parse(text)
        for part in (token, *(token.children or ()))
        if part.type.startswith("html_")
    ]
    assert [element for element in html if element.startswith("<!")] == [
        "<!-- dbt-ripple gate -->\n"
    ]
    assert "# *x*" not in text.splitlines()


def test_a_relation_that_nobody_declared_is_no_node_and_can_be_read() -> None:
    text = comment_of(world(BASE), world("select id, amount, code from elsewhere.raw"))
    assert text.splitlines()[1].startswith("### ")
    assert "#### What changed" in text


def test_of_an_edited_macro_it_says_what_calls_it_and_what_follows_each_once() -> None:
    def side(body: str) -> Project:
        columns = ", ".join(f"amount {body} as c{i}" for i in range(4))
        called = [
            node(
                f"model.p.{name}",
                f"select id, {columns} from s.raw",
                RAW,
                raw="select id, {{ cents('amount') }} from {{ source('s', 'raw') }}",
                macros=["macro.p.cents"],
            )
            for name in ("one", "two")
        ]
        below = node(
            "model.p.below",
            "select a.*, b.c0 as d0 from s.one a join s.two b on a.c0 = b.c0 and a.id = b.id",
            "model.p.one",
            "model.p.two",
        )
        macros = [macro("macro.p.cents", f"{{% macro cents(c) %}}{body}{{% endmacro %}}")]
        return project(node(RAW), *called, below, catalog={RAW: ["id", "amount"]}, macros=macros)

    lines = comment_of(side("+ 1"), side("+ 2")).splitlines()
    (edited,) = [line for line in lines if line.startswith("- macro")]
    assert edited.startswith("- macro `cents` (`macros/cents.sql`) in `one`, `two`: ")
    assert "| warn | `blast_radius` | the change | reaches 3 assets |" in lines
    of_assets = [line for line in lines if line.startswith("| warning")]
    assert of_assets == [
        "| warning | `one` (dbt_model) | changes in `c0`, `c1`, `c2`, `c3` |  |",
        "| warning | `two` (dbt_model) | changes in `c0`, `c1`, `c2`, `c3` |  |",
        "| warning | `below` (dbt_model) | `one` (4 columns), `two.c0` |  |",
    ]
