"""User-defined functions that dbt builds, and that queries call.

A call is marked in the query with the function's fingerprint (`flow.function_marks`): so what is made of it
changes with the function, and the rest of the query does not. Where it cannot be told that all calls of
a function stand in the query, all that the node gives depends on the function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.function_marks import KINDS, FunctionKind, MarkedText, mark_calls, mark_of
from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.ir import Select
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.linking.node_parents import functions_above, relations_above
from dbt_ripple.graph.node_properties import counted, kind_of
from dbt_ripple.graph.normalized_code import code_of

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

_CALL: Final = re.compile(r"(\w+)\s*\(")


def function_fingerprint(linker: Linker, unique_id: str) -> bytes:
    """A fingerprint of a function: its body, its signature, what builds it, and all that its refs hold."""
    fingerprint = linker.functions.get(unique_id)
    if fingerprint is None:
        linker.functions[unique_id] = b""  # where functions call each other, once is enough
        node, context = linker.project.nodes[unique_id], linker.context
        settings = sorted(counted(node, context.project.metadata.adapter_type))
        parts = [
            code_of(node).encode("utf-8", "surrogatepass"),
            context.macros.variables_of(node).encode(),
            repr((node.arguments, node.returns, settings)).encode(),
            # Those that dbt ran to build it, it has noted only where it was built.
            context.macros.fingerprint(
                [
                    *node.depends_on.macros,
                    *context.macros.run_by("function", node.package_name),
                ]
            ),
        ]
        for parent in relations_above(linker, unique_id):
            relation = linker.node(parent).relation
            parts += [relation.all_fp(), relation.rows.fp]
        parts += functions_called(linker, unique_id)
        fingerprint = linker.functions[unique_id] = digest(*parts)
    return fingerprint


def functions_called(linker: Linker, unique_id: str) -> list[bytes]:
    """Fingerprints of the functions that a node calls."""
    return [function_fingerprint(linker, f) for f in functions_above(linker, unique_id)]


def functions_besides_query(linker: Linker, unique_id: str, node: Node) -> list[bytes]:
    """Fingerprints of the functions of which a node may have other calls than those in its query."""
    above = functions_above(linker, unique_id)
    if not above:
        return []
    marked = marked_calls(linker, node, node.compiled_code or "")
    names = {u: _name(linker.project.nodes[u]) for u in above}
    hidden = _texts_besides_query(linker, node)
    return [
        function_fingerprint(linker, unique_id)
        for unique_id, name in names.items()
        if unique_id not in marked.called
        or name in marked.elsewhere
        or hidden is None
        or any(re.search(rf"\b(?:function|{re.escape(name)})\b", text, re.I) for text in hidden)
    ]


def marked_calls(linker: Linker, node: Node, sql: str) -> MarkedText:
    """A node's query with its calls of the project's functions marked."""
    if not linker.context.functions:
        return MarkedText(sql, {}, frozenset(), frozenset())
    marked = linker.marked.get(sql)
    if marked is None or marked[0] != node.unique_id:
        nodes = linker.project.nodes
        above = set(functions_above(linker, node.unique_id))
        by_name = linker.context.functions_by_name

        def meant(name: str, path: list[str]) -> list[str]:
            """The functions that have the name, in the schema that stands there; those it refers to, where none does."""
            return [u for u in by_name[name] if (_is_in(nodes[u], path) if path else u in above)]

        def mark(called: Collection[str], in_schema: bool) -> str:
            parts = [function_fingerprint(linker, u) for u in called]
            fingerprint = digest(b"in schema" if in_schema else b"", *parts)
            kinds = {_kind(linker, u) for u in called}
            return mark_of(kinds.pop() if len(kinds) == 1 else "unknown", fingerprint)

        text = mark_calls(sql, linker.dialect, by_name, meant, mark)
        marked = linker.marked[sql] = node.unique_id, text
    return marked[1]


def _name(function: Node) -> str:
    return (function.alias or function.name).lower()


def _is_in(function: Node, path: list[str]) -> bool:
    """Whether this may be the database and schema of a function, as far as they are given."""
    place = [(part or "").lower() for part in (function.database, function.schema)]
    return place[-len(path) :] == path


def _kind(linker: Linker, unique_id: str) -> FunctionKind:
    """What a function does to rows, as far as it is known.

    DuckDB's are macros: what they are written as stands in the query in place of their call.
    """
    node = linker.project.nodes[unique_id]
    kind = KINDS.get(str(node.config.get("type") or "scalar"), "unknown")
    if linker.dialect != "duckdb" or node.is_python:
        return kind
    body = marked_calls(linker, node, node.compiled_code or node.raw_code).sql
    query = linker.queries.lowered(f"select {body}").rel
    context = linker.context
    building = context.macros.run_by("function", node.package_name) & context.macros.user
    around = " ".join(context.macros.macros[u].macro_sql for u in building).lower()
    plain = (
        kind == "scalar"
        and type(query) is Select
        and not (query.grouped or query.aggregated or query.generators or query.uncertain)
        and not (query.windowed or query.volatile or query.subs or query.sources)
        and re.search(r"\bover\b", around) is None
        and not any(
            functions("duckdb").kind(name) in ("aggregate", "generator")
            for name in _CALL.findall(around)
        )
    )
    return "scalar" if plain else "unknown"


def _texts_besides_query(linker: Linker, node: Node) -> Iterable[str] | None:
    """What may call functions beside a node's query; None where the query may be another one.

    That are its hooks, its branches for other runs, and what builds it.
    """
    context = linker.context
    config, macros = context.config_fingerprints, context.macros
    if context.introspection.of(node) or config.may_be_other_sql(node):
        return None
    branches, called = config.hidden(node)
    texts = [branches, str(node.config.get("sql_header") or ""), *(s for _, s in hooks_of(node))]
    start = {*called, *(macro for text in texts for macro in macros.named_in(text))}
    reached = macros.closure(start) | macros.run_by(kind_of(node), node.package_name)
    return [*texts, *(macros.macros[u].macro_sql for u in sorted(reached & macros.user))]
