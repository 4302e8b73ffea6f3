"""Nodes that cannot be analysed, Python models among them: they may use all that their parents hold."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold_stored
from dbt_ripple.flow.ir import TRANSFORMATION
from dbt_ripple.flow.relation import (
    Deps,
    Relation,
    RowSet,
    merge,
    through,
)
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.linking.functions import functions_called
from dbt_ripple.graph.linking.node_parents import not_below, relations_above
from dbt_ripple.graph.linking.other_dependencies import besides_query
from dbt_ripple.graph.node_properties import declared
from dbt_ripple.graph.normalized_code import code_of
from dbt_ripple.graph.relations import (
    LinkedNode,
    OpaqueNodeColumns,
    columns_of_node,
    rows_of_node,
)
from dbt_ripple.graph.unnamed_reads import CATALOG, words_of_names
from dbt_ripple.graph.unresolved_names import STORED
from dbt_ripple.jinja.text import normalised, without_tags
from dbt_ripple.reasons import Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

MAX_OPAQUE_EDGES: Final = 20_000
"""Of an opaque node, parent columns times own columns above which the pairs are not spelled out:
its parents' columns then lead to its rows, and its columns come from its parents' rows."""

_PYTHON_STRING: Final = re.compile(
    r"""'''.*?'''|\"{3}.*?\"{3}|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.S
)

_LAYOUT_HAS_NO_MEANING: Final = frozenset({"databricks", "duckdb", "postgres", "redshift", "spark"})
"""Dialects where comments and white space decide nothing, not even what a column is called.

Snowflake calls a column what its expression looks like, and ``5--3`` is 8 in MySQL.
"""


def link_opaque(linker: Linker, unique_id: str, node: Node, reason: Reason) -> LinkedNode:
    """A node that cannot be analysed, for this reason."""
    named = {*linker.names.named_by(words_of_names(_text_that_names(node)))}
    above = dict.fromkeys(relations_above(linker, unique_id))
    named -= {unique_id, *above, *linker.in_progress}
    above |= dict.fromkeys(not_below(linker.project, unique_id, named))
    asked, looked_at = b"", list[str]()
    if not node.is_python:
        reads = linker.context.introspection.of(node)
        asked, looked_at = besides_query(linker, unique_id, node, reads)
    linker.above.setdefault(unique_id, set()).update(above)
    relations = [linker.node(p).relation for p in above]
    fingerprint = digest(
        b"opaque",
        text_by_unique_id(linker, unique_id, node).encode("utf-8", "surrogatepass"),
        linker.context.config_fingerprints.of(node, columns=True),
        repr(declared(node) if node.contract_enforced else []).encode(),
        *functions_called(linker, unique_id),
        *_left_for(linker, unique_id, node),
        *([b"given once"] if _is_given_once(linker, unique_id, node) else []),
        *(token for _, token in linker.context.in_other_order.get(unique_id, ())),
        *([asked] if asked else []),
        *(fp for r in relations for fp in (r.all_fp(), r.rows.fp)),
    )
    in_catalog = [c.name for c in linker.catalog.get(unique_id, ())]
    closed = bool(in_catalog)
    names = in_catalog or [c.name for c in node.columns.values()]
    everything: Deps = {}
    pairs = sum(len(r.columns) for r in relations) * max(len(names), 1)
    rows: Deps = {}
    for r in relations:
        merge(everything, through(TRANSFORMATION, r.rows.deps))
        merge(rows, r.whole(TRANSFORMATION))
    if pairs <= MAX_OPAQUE_EDGES:
        merge(everything, rows)
    fps = [digest(fingerprint, fold_stored(name, linker.dialect).encode()) for name in names]
    rows_fp, side_key = digest(fingerprint, b"rows"), digest(b"leaf", unique_id.encode())
    unlisted = OpaqueNodeColumns(linker, unique_id, fingerprint, everything)
    relation = Relation(
        columns_of_node(unique_id, names, fps, linker.dialect),
        RowSet.unjoined(rows_fp, rows_of_node(unique_id), side_key),
        [] if closed else [unlisted],
    )
    analysis = NodeAnalysis(
        unique_id,
        "opaque",
        reason,
        columns=names,
        fingerprints=[fp.hex() for fp in fps],
        expressions=[None] * len(names),
        rows_fingerprint=rows_fp.hex(),
        introspects=looked_at,
        introspection_fingerprint=asked.hex(),
    )
    return LinkedNode(analysis, relation, [everything for _ in names], rows)


def _is_given_once(linker: Linker, unique_id: str, node: Node) -> bool:
    """Whether a node stores what would be another value each time."""
    return node.materialized in STORED and bool(linker.context.other_each_time(unique_id))


def _left_for(linker: Linker, unique_id: str, node: Node) -> list[bytes]:
    """What hooks make or write, and the catalog, where a node that was not analysed names it."""
    hooks = linker.context.hooks
    text = node.compiled_code or node.raw_code
    written_by_hooks = [f"{name}()" for name in hooks.called_in(text)]
    if hooks.writing:
        written_by_hooks += hooks.writing.keys() & set(re.findall(r"\w+", text.lower()))
    linker.above.setdefault(unique_id, set()).update(written_by_hooks)
    parts = [
        part for key in sorted(written_by_hooks) for part in (key.encode(), linker.left_in(key))
    ]
    if node.compiled_code is None and not node.is_python:
        text = without_tags(text, ",")  # what Jinja asks is known apart
    return [*parts, linker.context.all_code] if CATALOG.search(text) else parts


def unfollowed_text(linker: Linker, unique_id: str, node: Node, names: Iterable[str]) -> bytes:
    """A fingerprint of a query with names that cannot be followed: every word of it counts."""
    text = text_by_unique_id(linker, unique_id, node).encode("utf-8", "surrogatepass")
    return digest(b"cannot follow", text, *(name.encode() for name in names))


def text_by_unique_id(linker: Linker, unique_id: str, node: Node) -> str:
    """The text of a node that cannot be analysed, relations by unique_id (rule 6)."""
    macros = linker.context.macros
    if node.is_python or node.compiled_code is None:
        called = macros.fingerprint(node.depends_on.macros).hex()
        variables = macros.variables_of(node)
        references = linker.context.config_fingerprints.references.of(node)
        return f"{code_of(node)}{variables}\n{references!r}\n{called}"
    text = node.compiled_code
    for other in (unique_id, *linker.project.parents.get(unique_id, ())):
        if name := linker.project.nodes[other].relation_name:
            text = text.replace(name, other)
    if linker.dialect not in _LAYOUT_HAS_NO_MEANING or "/*+" in text or "/*!" in text:
        return text
    return normalised(text)


def _text_that_names(node: Node) -> str:
    """The part of a node's text in which names of relations can stand: of Python, its strings."""
    if node.is_python:
        return " ".join(match[0] for match in _PYTHON_STRING.finditer(node.raw_code))
    return node.compiled_code or ""
