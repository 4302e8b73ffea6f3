"""What `--run` leaves in the target folder reads base's relations; the next answer is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_run_tests import ripple
from tiny_project import dbt, write

pytestmark = pytest.mark.slow


def test_the_next_answer_is_the_same(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # One of the two reads its parent by an ephemeral model, so that its SQL has the name, too.
    write(
        tiny,
        {
            "models/fct_customers.sql": "select customer, {{ total('amount') }} + 1 as total\n"
            "from {{ ref('stg_orders') }} group by customer\n",
            "models/big_orders.sql": "{{ config(materialized='view') }}\n"
            "select order_id, amount from {{ ref('few') }} where amount > 11\n",
            "models/few.sql": "{{ config(materialized='ephemeral') }}\n"
            "select * from {{ ref('stg_orders') }}\n",
        },
    )
    assert dbt(tiny, "parse")
    asked = {
        "select": ("--format", "json"),
        "diff": ("--format", "json"),
        "gate": ("--format", "json"),
        "explain": ("not_null_fct_customers_total", "--format", "json"),
    }

    def answers() -> dict[str, str]:
        outputs = {}
        for command, arguments in asked.items():
            code, out, err = ripple(monkeypatch, capsys, command, *arguments, "--state", "../state")
            assert code == 0, err
            outputs[command] = out
        return outputs

    before = answers()
    code, _, err = ripple(monkeypatch, capsys, "select", "--state", "../state", "--run")
    assert code == 0, err
    left = (tiny / "target" / "manifest.json").read_text()
    assert '\\"prod\\".\\"stg_orders\\"' in left  # what dbt has read in the place of its own
    assert answers() == before
