"""One relation with a column of each type, and what it is as plain values, whichever way it is read."""

from __future__ import annotations

from typing import Any

PROJECT = "it's"


def statements(schema: str) -> list[str]:
    """What makes the relation ``of_all_types`` in a schema."""
    relation = f"{schema}.of_all_types"
    return [
        f"create schema {schema}",
        f"create table {relation} using parquet as select"
        " cast(x'69742773' as string) as project_name, t as text, cast(n as decimal(20, 2)) as amount,"
        " cast(n as double) as ratio, n > 1 as truth, cast(n as bigint) as many,"
        " timestamp_micros(1794787200123456 + n) as at, date'2026-11-16' as day,"
        " array(t, null) as texts, named_struct('a', n, 'b', t) as two, map(coalesce(t, 'k'), n) as by_text"
        " from values (1, ''), (2, 'null'), (3, null), (4, 'é') as v(n, t)",
        f"insert into {relation} (project_name) values ('another')",
    ]


def expected() -> list[dict[str, Any]]:
    """The rows of `PROJECT`, by the column ``many``."""
    return [
        {
            "project_name": PROJECT,
            "text": text,
            "amount": n,
            "ratio": float(n),
            "truth": n > 1,
            "many": n,
            "at": f"2026-11-16T00:00:00.12345{6 + n}+00:00"
            if n < 4
            else "2026-11-16T00:00:00.123460+00:00",
            "day": "2026-11-16",
            "texts": f'["{text}",null]' if text is not None else "[null,null]",
            "two": f'{{"a":{n},"b":"{text}"}}' if text is not None else f'{{"a":{n}}}',
            "by_text": f'{{"{"k" if text is None else text}":{n}}}',
        }
        for n, text in ((1, ""), (2, "null"), (3, None), (4, "é"))
    ]
