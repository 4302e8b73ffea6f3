"""What `make matrix` writes down."""

from __future__ import annotations

from pathlib import Path

import matrix

REPORT = """<testsuites><testsuite>
<testcase classname="tests.integration.test_shop" name="test_a" time="61.2" />
<testcase classname="tests.spark.test_b" name="test_c" time="2"><failure>no</failure></testcase>
</testsuite></testsuites>"""


def test_the_page_has_each_test_and_how_it_went(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    text = matrix.page(matrix.read(tmp_path / "report.xml"), "2026-01-02", "abc", "pyspark 4.1")
    assert "The last run: 2026-01-02, commit `abc`, pyspark 4.1." in text
    assert text.splitlines()[-2:] == [
        "| `integration.test_shop.test_a` | passed | 61 |",
        "| `spark.test_b.test_c` | failure | 2 |",
    ]
