"""Ten thousand nodes: the page opens and answers a search; how long it takes is printed.

Times are ratios to a page of a hundred nodes, in the same browser: what a machine makes of it in
seconds is its own matter. What is drawn does not grow with the project.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browsers import OpenPage
from large_project import large

from dbt_ripple.pages.explorer import explorer_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def measured(open_page: Callable[..., OpenPage], file: Path) -> tuple[float, float, float]:
    """Seconds to open, to answer the slowest of some searches, and to draw a selection: best of three."""
    opens, searches, draws = [], [], []
    for _ in range(3):
        one = open_page(viewport={"width": 1440, "height": 900})
        started = time.perf_counter()
        one.page.goto(file.resolve().as_uri())
        one.page.wait_for_selector("#app[data-ready]", timeout=120_000)
        opens.append(time.perf_counter() - started)
        # The first search reads all names; each that follows is what one feels when typing.
        spent = one.page.evaluate(
            """() => ['m', 'model_00042', 'order_total', 'customer_amount_7', 'team_5', 'zzz']
                .map(query => {
                  const input = document.getElementById('search');
                  input.value = query;
                  const started = performance.now();
                  input.dispatchEvent(new Event('input'));
                  return performance.now() - started;
                })"""
        )
        searches.append(max(spent) / 1000)
        draws.append(
            one.page.evaluate(
                """async () => {
                  const started = performance.now();
                  location.hash = 'node=model.p.model_00042&depth=3';
                  while (!document.querySelector('.box')) await new Promise(requestAnimationFrame);
                  return performance.now() - started;
                }"""
            )
            / 1000
        )
        one.errors.extend(
            [] if one.page.locator(".box").count() <= 100 else ["more is drawn than asked for"]
        )
        one.requests[:] = [r for r in one.requests if r != file.resolve().as_uri()]
        one.page.context.close()
    return min(opens), min(searches), min(draws)


def test_ten_thousand_nodes_open_and_are_searched(
    tmp_path: Path, open_page: Callable[..., OpenPage], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {}
    for number in (100, 10_000):
        file = tmp_path / f"{number}.html"
        file.write_text(explorer_page(large(number)), encoding="utf-8")
        figures[number] = (file.stat().st_size / 1e6, *measured(open_page, file))
    small, big = figures[100], figures[10_000]
    with capsys.disabled():
        print()
        for name, unit, a, b in zip(
            ("page", "open", "search", "draw"), ("MB", "s", "s", "s"), small, big, strict=True
        ):
            print(
                f"  {name:7} 100 nodes {a:8.3f} {unit:2}   10,000 nodes {b:8.3f} {unit:2}   {b / a:6.1f} times"
            )
    # A hundred times the nodes: the page is packed, only what is asked for is drawn, and no search
    # takes so long that one waits for letters to appear.
    assert big[0] / small[0] < 60
    assert big[1] / small[1] < 30
    assert big[2] < 0.5 * big[1]
    assert big[3] / small[3] < 10
