"""What a query may read without naming it as a relation of the project.

A query names a relation if linking resolves one of its tables to that node. It may also read
others: by a bare name that the search path resolves, by a string (``query_table('orders')``), by a
macro or view that a hook made, through the warehouse's own catalog. dbt's ``depends_on`` lists
some of these: what it lists and the query does not name is read, or may be read, in one of these
ways.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from jinja2 import nodes

from dbt_ripple.artifacts import Node
from dbt_ripple.graph.relation_names import RelationNames
from dbt_ripple.jinja.text import branches, in_tags, normalised, tree_of

CATALOG: Final = re.compile(
    r"""\b(?: information_schema | pg_catalog | account_usage | pg_class | pg_attribute | pg_tables
    | pg_views | pg_stats\w* | svv_\w+ | svl_\w+ | stv_\w+ | all_tables | all_tab_columns | all_objects | user_tables
    | user_tab_columns | sqlite_master | sqlite_schema | duckdb_(?:columns|constraints|dependencies
      |indexes|schemas|sequences|tables|types|views)
    | __tables__ | __tables_summary__ | pragma_\w+ | sys\.(?:tables|columns|objects|views|partitions)
    | system\.(?:tables|columns|parts))\b""",
    re.I | re.X,
)
"""What engines call the tables and functions that list all relations."""

_LISTS_FILES: Final = re.compile(
    r"""(?: explode\w* | flatten | generate\w* | glob | inline\w* | json_\w+ | jsonb_\w+ | posexplode\w*
    | range | read\w* | \w+_scan | sequence | split\w* | stack | string_split\w* | unnest
    | variant_explode\w* )\(""",
    re.X,
)
"""Table functions whose strings are values or files, never relations."""

_WORD: Final = re.compile(r"\w+(?:\s*\.\s*\w+)*")
_LOOK_AT_IT: Final = frozenset(
    "get_columns_in_relation get_filtered_columns_in_relation get_column_values star".split()
)
"""What is given a relation and does not read it in the query (rule 11 says what it shows)."""
_LOOKS: Final = re.compile(rf"\b(?:{'|'.join(sorted(_LOOK_AT_IT))})\b")


class UnnamedReads(NamedTuple):
    """What a query may read besides the relations it names.

    Attributes:
        whole: relations of which every column and the rows count, by unique_id.
        hooks: what hooks write or make and the query names: keys of `Linker.left`.
        catalog: whether it reads the warehouse's catalog.
    """

    whole: dict[str, None]
    hooks: list[str]
    catalog: bool


def relations_in(called: Sequence[str], names: RelationNames) -> set[str]:
    """The relations that the strings may name which table functions are given."""
    functions = [name for name in called if name.endswith("(")]
    if functions and all(_LISTS_FILES.fullmatch(name) for name in functions):
        return set()
    unique_ids: set[str] = set()
    for text in called:
        for word in () if text.endswith("(") else _WORD.findall(text):
            if "." in word and (unique_id := names.node_named(word)) is not None:
                unique_ids.add(unique_id)
            unique_ids |= names.by_identifier.get(word.rpartition(".")[2].strip().lower(), set())
    return unique_ids


def words_of_names(text: str) -> frozenset[str]:
    """The words of a text that may be names of relations, with all that stands before a dot."""
    return frozenset(_WORD.findall(re.sub(r"[`\"\[\]]", "", text)))


_BEFORE_A_BRACKET: Final = re.compile(r"""([\w"'`\].$]*)\s*\(""")
_READS_NOTHING: Final = frozenset(
    "all and as between by case cast else exists from having in join not on or select then union when where".split()
).union([""])
"""Words of SQL before a bracket that call nothing."""


def reads_nothing(sql: str) -> bool:
    """Whether a query that names no table cannot read one in any other way: it calls no function.

    So is a test that compares names of columns, which its Jinja has asked for.

    Example:
        >>> reads_nothing("with t as (select cast('id' as text) as c) select * from t where not (1 = 1)")
        True
        >>> [reads_nothing(f"select {call}") for call in ("size_of()", '"size_of" ()', "s.size_of()")]
        [False, False, False]
    """
    return _READS_NOTHING.issuperset(_BEFORE_A_BRACKET.findall(sql.lower()))


def not_read(node: Node) -> set[str]:
    """The names of refs and sources of which a node's own code shows that its query reads none.

    Each of them stands in a branch of an incremental model that was not compiled, or is handed to
    a macro that only looks at columns or values. What else counts of those, rules 7 and 11 say. A
    comment (``-- depends_on: {{ ref('orders') }}``) is there for dbt and shows nothing.
    """
    raw = node.raw_code
    if node.materialized != "incremental" and not _LOOKS.search(in_tags(raw)):
        return set()
    code = normalised(raw)
    hidden = "\n".join(branches(code)) if node.materialized == "incremental" else ""
    in_branches = sum(_references(hidden), Counter())
    read, looked_at = _references(code)
    return {name for name in in_branches | looked_at if read[name] <= in_branches[name]}


def _references(text: str) -> tuple[Counter[str], Counter[str]]:
    """How often refs and sources are named, by name: to be read, and only to be looked at."""
    read: Counter[str] = Counter()
    looked_at: Counter[str] = Counter()
    tree = tree_of(text)
    calls = list(tree.find_all(nodes.Call)) if tree is not None else []
    only_looked_at = {
        id(argument)
        for call in calls
        if getattr(call.node, "attr", getattr(call.node, "name", "")) in _LOOK_AT_IT
        for argument in (*call.args[:1], *(keyword.value for keyword in call.kwargs[:1]))
    }
    for call in calls:
        names = [arg.value for arg in call.args if isinstance(arg, nodes.Const)]
        if names and getattr(call.node, "name", "") in ("ref", "source"):
            (looked_at if id(call) in only_looked_at else read)[str(names[-1])] += 1
    return read, looked_at
