"""How many refactors in other words select a test, with the second comparison and without it.

``python tests/campaign/measure_words.py`` builds the shop and compares each edit in memory; nothing of
what is edited is executed, which the campaign does.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock

import msgspec
from refactors import IN_OTHER_WORDS
from worlds import shop

from dbt_ripple.changes import compare
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.selection.select import impacted_tests

SECOND = "dbt_ripple.changes.compare.prove_equivalent"


def main() -> None:
    """Print of each refactor on how many models it was made, and on how many it selects."""
    made, without, selecting = Counter[str](), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="words") as work:
        world, _ = shop(Path(work))
        base = world.project
        analysis = analyse(base)
        for name, make in IN_OTHER_WORDS.items():
            for unique_id in world.relations:
                node = base.nodes[unique_id]
                if node.resource_type not in ("model", "snapshot") or not node.compiled_code:
                    continue
                edit = make(world, unique_id)
                if edit is None:
                    continue
                nodes = dict(base.nodes)
                for edited, sql in edit.sql.items():
                    nodes[edited] = msgspec.structs.replace(
                        nodes[edited], compiled_code=sql, raw_code=sql
                    )
                head = dataclasses.replace(base, nodes=nodes)
                analyses = {"base_analysis": analysis, "head_analysis": analyse(head)}
                made[name] += 1
                selecting[name] += bool(impacted_tests(compare(base, head, **analyses)))
                with mock.patch(SECOND):
                    without[name] += bool(impacted_tests(compare(base, head, **analyses)))
    for name, count in made.items():
        print(f"{name:50} {count:4} {without[name]:4} {selecting[name]:4}")
    print(
        f"{'in all, and what selects without and with it':50} {made.total():4} "
        f"{without.total():4} {selecting.total():4}"
    )


if __name__ == "__main__":
    main()
