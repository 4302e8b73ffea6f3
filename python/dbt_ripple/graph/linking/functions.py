"""User-defined functions that dbt builds, and that queries call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.linking.node_parents import functions_above, relations_above
from dbt_ripple.graph.node_properties import counted
from dbt_ripple.graph.normalized_code import code_of

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


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
    functions = functions_above(linker, unique_id)
    return [function_fingerprint(linker, function) for function in functions]
