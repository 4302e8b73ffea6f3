"""SQL that is easily misread: clauses few parsers know, names that hide names, order that is kept.

The grammar of `generators` writes it; `constructs_of` tells which a text has, so that a campaign can
count the edits made where each stands.
"""

from __future__ import annotations

import re
from typing import Final

CONSTRUCTS: Final = {
    # What the lowering has to read.
    "ORDER BY ALL": r"order by all",
    "NULLS FIRST or LAST": r"nulls (first|last)",
    "recursive CTE": r"with recursive",
    "USING KEY": r"using key",
    "PIVOT with GROUP BY": r"\bpivot *\([^|]*? group by",
    "PIVOT as a statement": r"\bpivot \(select[^|]*? on \w+ ",
    "UNPIVOT": r"\bunpivot\b",
    "COLUMNS(...)": r"\bcolumns *\(",
    "function of COLUMNS": r"\w\(\s*columns *\(",
    "* LIKE": r"\* (like|ilike) ",
    "* RENAME": r"\* rename",
    "LIMIT in percent": r"limit \d+ ?(%|percent)",
    "sample with a seed": r"using sample|tablesample",
    "ASOF JOIN": r"\basof\b",
    "POSITIONAL JOIN": r"\bpositional\b",
    "LATERAL": r"\blateral\b",
    "UNION BY NAME": r"\bby name\b",
    "frame with EXCLUDE": r"\bexclude (ties|group|current row|no others)",
    "IGNORE NULLS": r"\bignore nulls\b",
    "named window": r"\bwindow \w+ as\b",
    "lambda": r"\blambda\b|->",
    "list comprehension": r"\bfor \w+ in \[",
    # What counts unless it is known to be harmless.
    "rare aggregate": r"\b(kahan_sum|favg|arg_max_null|arg_min_null|argmax|bitstring_agg|product|entropy|kurtosis|mad|histogram|bool_xor|geomean|weighted_avg|any_value|quantile_disc)\(",
    "rare row function": r"\b(levenshtein|jaccard|list_cosine\w*|format|bar|gcd|lcm|nfc_normalize|chr|soundex|printf)\(",
    "generate_subscripts": r"\bgenerate_subscripts\b",
    # Names.
    "HAVING and an alias": r"\bhaving [^|]*?\bal_\d",
    "alias over a column": r" as (id|k|v)\b",
    "stored names": r"\bas twice\b",
    "NATURAL JOIN": r"\bnatural\b",
    "USING": r"\busing *\(",
    "keys of a struct": r"\{'(?-i:[A-Z])",
    "a row as JSON": r"\bto_json\(",
    "struct.*": r"\bst\.\*",
    # What is proven, and order.
    "UNNEST in the select list": r"\bunnest\(",
    "UNNEST beside GROUP BY": r"\bunnest\([^|]*? group by",
    "DISTINCT ON an ordinal or alias": r"distinct on *\((1|al_\w+)\)",
    "order into list()": r"\blist\(",
    "ARRAY(subquery)": r"\barray *\(\s*select",
    "order into LIMIT through UNION ALL": r"order by[^|]*union all[^|]*limit",
    "GROUPING SETS": r"\b(rollup|cube|grouping sets) *\(",
    "QUALIFY": r"\bqualify\b",
}
"""Each construct and what its text looks like."""

_PATTERNS: Final = {name: re.compile(pattern, re.I | re.S) for name, pattern in CONSTRUCTS.items()}


def constructs_of(*texts: str | None) -> list[str]:
    """Which constructs stand in any of these queries."""
    one = " | ".join(" ".join(t.split()) for t in texts if t)
    return [name for name, pattern in _PATTERNS.items() if pattern.search(one)]
