"""A file of proposed changes, as the pull request of a migration carries it: ``impact --changes``.

```json
{"asset_id": "raw_orders",
 "proposed_changes": [
   {"type": "column_rename", "from": "order_total", "to": "total_amount"},
   {"type": "column_drop", "column": "legacy_discount_code"},
   {"type": "column_type_change", "column": "amount", "to": "decimal(18,2)"},
   {"type": "column_add", "column": "currency", "data_type": "string", "required": true},
   {"type": "deprecation", "date": "2027-03-31"},
   {"type": "removal"}]}
```

The list alone is a file as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import did_you_mean
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.hypothetical_changes import Change


class _Rename(msgspec.Struct, tag_field="type", tag="column_rename", forbid_unknown_fields=True):
    old: str = msgspec.field(name="from")
    to: str

    def change(self) -> Change:
        return Change("rename", self.old, self.to)


class _Drop(msgspec.Struct, tag_field="type", tag="column_drop", forbid_unknown_fields=True):
    column: str

    def change(self) -> Change:
        return Change("drop", self.column)


class _Retype(
    msgspec.Struct, tag_field="type", tag="column_type_change", forbid_unknown_fields=True
):
    column: str
    to: str

    def change(self) -> Change:
        return Change("retype", self.column, self.to)


class _Add(msgspec.Struct, tag_field="type", tag="column_add", forbid_unknown_fields=True):
    column: str
    data_type: str
    required: bool = False

    def change(self) -> Change:
        return Change("add", self.column, self.data_type, self.required)


class _Deprecation(msgspec.Struct, tag_field="type", tag="deprecation", forbid_unknown_fields=True):
    date: str = ""

    def change(self) -> Change:
        return Change("deprecate", to=self.date)


class _Removal(msgspec.Struct, tag_field="type", tag="removal", forbid_unknown_fields=True):
    def change(self) -> Change:
        return Change("remove")


_Proposed = _Rename | _Drop | _Retype | _Add | _Deprecation | _Removal
TYPES: Final = (
    "column_rename",
    "column_drop",
    "column_type_change",
    "column_add",
    "deprecation",
    "removal",
)


class ChangesFile(msgspec.Struct, forbid_unknown_fields=True):
    """What would be changed, and of which node; ``POST /lineage/impact`` takes the same."""

    proposed_changes: list[_Proposed]
    asset_id: str | None = None


def read_proposed(file: Path) -> tuple[str | None, list[Change]]:
    """The asset that the file names, if it does, and the changes.

    Raises:
        RippleError: it cannot be read, or says what is no change.
    """
    where = str(file)
    try:
        document: Any = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RippleError(f"cannot be read: {error}", where, "write it as JSON") from None
    return proposed_in(document, where)


def proposed_in(document: Any, where: str) -> tuple[str | None, list[Change]]:
    """The same of a document that is read already.

    Raises:
        RippleError: it says what is no change.
    """
    if isinstance(document, list):
        document = {"proposed_changes": document}
    listed = document.get("proposed_changes") if isinstance(document, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind is not None and kind not in TYPES:
            fix = did_you_mean(str(kind), TYPES, f"say {', '.join(TYPES)}")
            raise RippleError(f"no change is a {kind!r}", where, fix)
    try:
        content = msgspec.convert(document, ChangesFile)
    except msgspec.ValidationError as error:
        raise RippleError(
            str(error), where, "see docs/impact.md: it has `proposed_changes`, a list"
        ) from None
    return content.asset_id, [proposed.change() for proposed in content.proposed_changes]
