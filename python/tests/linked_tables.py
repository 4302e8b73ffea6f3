"""Tables as the linker is given them, for tests that link a query without a project."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.relation import ROWS, OutputColumn, Relation, RowSet, UnlistedColumns


def table_relation(
    name: str,
    columns: Iterable[str],
    unlisted: Sequence[UnlistedColumns] = (),
    unresolved: Sequence[UnlistedColumns] = (),
) -> Relation:
    """A table: every column comes from itself, and has a fingerprint of its own.

    Args:
        name: of the table.
        columns: their names as shown; they are compared in lower case.
        unlisted: the columns that nothing lists.
        unresolved: where a name is looked for that the table does not have.
    """
    leaf = digest(b"leaf", name.encode())
    return Relation(
        [
            OutputColumn(
                c, c.lower(), digest(leaf, c.lower().encode()), {(name, c.lower()): IDENTITY}
            )
            for c in columns
        ],
        RowSet.unjoined(leaf, {(name, ROWS): IDENTITY}, leaf),
        list(unlisted),
        list(unresolved),
    )
