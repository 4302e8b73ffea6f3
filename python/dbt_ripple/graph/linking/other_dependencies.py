"""What a node depends on besides the relations that its query names.

That is what its Jinja queries while it compiles (rule 11), what its hooks refer to, the functions
that it calls, and what its query may read without naming it (`graph.unnamed_reads`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import CONDITIONAL
from dbt_ripple.flow.relation import Deps, merge, unlisted_fp
from dbt_ripple.graph.introspection import IntrospectedParts, WarehouseReads
from dbt_ripple.graph.linking.functions import functions_besides_query
from dbt_ripple.graph.linking.node_parents import (
    named_by_hooks,
    named_by_jinja,
    not_below,
    relations_above,
)
from dbt_ripple.graph.linking.project_context import kind_of_relation
from dbt_ripple.graph.linking.seeds import types_of_seed_file
from dbt_ripple.graph.linking.sources import DATASET_PREFIX
from dbt_ripple.graph.unnamed_reads import (
    CATALOG,
    UnnamedReads,
    not_read,
    reads_nothing,
    relations_in,
)
from dbt_ripple.jinja.text import normalised
from dbt_ripple.reasons import Code, Reason, several

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


def besides_query(
    linker: Linker, unique_id: str, node: Node, reads: WarehouseReads
) -> tuple[bytes, list[str]]:
    """What Jinja, hooks and functions add to a node's query.

    Returns:
        A fingerprint of it, empty for nothing; and the relations that may be part of it, none for nothing.
    """
    if unique_id in linker.mode.settled:
        return b"", []
    context, nodes = linker.context, linker.project.nodes
    parts: list[bytes] = []
    if unique_id in linker.project.blind:
        called = context.macros.fingerprint(node.depends_on.macros)
        code = normalised(node.raw_code).encode("utf-8", "surrogatepass")
        parts += [b"as written", code, called]
    introspected = reads.parts
    if introspected:
        for parent in sorted(relations_above(linker, unique_id)):
            relation = linker.node(parent).relation
            parts.append(parent.encode())
            if (
                introspected == IntrospectedParts.COLUMNS
                and (types := types_of_seed_file(linker, parent)) is not None
            ):
                parts.append(types)
            elif introspected == IntrospectedParts.NAMES:
                parts += [key.encode() for key in relation.keys]
                parts.append(unlisted_fp(relation.unlisted))
            else:
                parts.append(relation.all_fp())
            if introspected == IntrospectedParts.EVERYTHING:
                parts.append(relation.rows.fp)
    if reads.exist and introspected != IntrospectedParts.EVERYTHING:
        for parent in sorted(relations_above(linker, unique_id)):
            parts += [parent.encode(), repr(kind_of_relation(nodes[parent])).encode()]
    by_hooks = named_by_hooks(linker, unique_id, node)
    for other in by_hooks:
        relation = linker.node(other).relation
        parts += [other.encode(), relation.all_fp(), relation.rows.fp]
    by_jinja = named_by_jinja(linker, unique_id, node, reads)
    for other in by_jinja:
        parts += [other.encode(), repr(kind_of_relation(nodes[other])).encode()]
        if reads.parts == IntrospectedParts.EVERYTHING:
            relation = linker.node(other).relation
            parts += [relation.all_fp(), relation.rows.fp]
    if reads.parts == IntrospectedParts.EVERYTHING:
        named = context.introspection.named(node)
        if named.catalog:
            parts.append(context.all_code if named.columns else context.all_places)
    for name, column in reads.values:
        parents = relations_above(linker, unique_id)
        for parent in [p for p in parents if nodes[p].name == name] or parents:
            relation = linker.node(parent).relation
            asked = relation.get(fold(column, False, linker.dialect), column)
            parts += [relation.rows.fp, asked[0] if asked else relation.all_fp()]
    parts += functions_besides_query(linker, unique_id, node)
    if not parts:
        return b"", []
    return digest(*parts), [*relations_above(linker, unique_id), *by_hooks, *by_jinja]


def unnamed_reads(
    linker: Linker, unique_id: str, node: Node, reads: WarehouseReads
) -> UnnamedReads | None:
    """What a node's query may read besides the relations it names; None where that is nothing.

    The query has been followed.
    """
    project, names, hooks = linker.project, linker.names, linker.context.hooks
    named = linker.named_by.get(unique_id, frozenset[str]())
    called = linker.called.get(unique_id, ())
    parents = project.parents.get(unique_id, ())
    as_dbt_says = len(named) == len(parents) and named.issuperset(parents)
    if as_dbt_says and not called and not hooks.making:  # so do nearly all
        return None
    whole: dict[str, None] = {}
    unnamed = [p for p in relations_above(linker, unique_id) if p not in named]
    if node.resource_type == "test" and not named and not called:
        unnamed = [] if reads_nothing(node.compiled_code or "") else unnamed
    if unnamed and reads.parts != IntrospectedParts.EVERYTHING:
        apart = not_read(node)
        whole.update((p, None) for p in unnamed if project.nodes[p].name not in apart)
    strange = [u.removeprefix(DATASET_PREFIX) for u in named if u.startswith(DATASET_PREFIX)]
    maybe = relations_in(called, names) if called else set()
    for key in strange:
        if "." not in key:
            maybe |= names.by_identifier.get(key.strip('"'), set())
    for other in not_below(project, unique_id, maybe - {unique_id, *linker.in_progress}):
        whole.setdefault(other)
    built_by_hooks = [u for key in strange if (u := key.rpartition(".")[2]) in hooks.writing]
    built_by_hooks += [f"{name}()" for name in hooks.called_in(node.compiled_code or "")]
    catalog = any(CATALOG.search(text) for text in (*strange, *called))
    if not whole and not built_by_hooks and not catalog:
        return None
    linker.above.setdefault(unique_id, set()).update(whole, built_by_hooks)
    return UnnamedReads(whole, sorted(built_by_hooks), catalog)


def unnamed_fingerprint(linker: Linker, unnamed: UnnamedReads | None) -> bytes:
    """A fingerprint of all that a query may read and does not name; empty for nothing."""
    if unnamed is None:
        return b""
    parts = whole_fingerprints(linker, unnamed.whole)
    for key in unnamed.hooks:
        parts += [key.encode(), linker.left_in(key)]
    if unnamed.catalog:
        parts.append(linker.context.all_code)
    return digest(b"beyond", *parts)


def why_unnamed(linker: Linker, unnamed: UnnamedReads) -> Reason:
    """The reason given of a node that may read what its query does not name."""
    nodes = linker.project.nodes
    reasons: list[Reason] = []
    if unnamed.whole:
        reasons.append(Code.READS_UNNAMED(names=[nodes[u].display_name for u in unnamed.whole]))
    if unnamed.hooks:
        reasons.append(Code.READS_WHAT_HOOKS_MAKE(names=[*unnamed.hooks[:3]]))
    if unnamed.catalog:
        reasons.append(Code.READS_CATALOG())
    return several(reasons)


def whole_fingerprints(linker: Linker, unique_ids: Iterable[str]) -> list[bytes]:
    """Fingerprints of all that these relations hold."""
    parts: list[bytes] = []
    for unique_id in sorted(unique_ids):
        relation = linker.node(unique_id).relation
        parts += [unique_id.encode(), relation.all_fp(), relation.rows.fp]
    return parts


def whole_relations(linker: Linker, unique_ids: Iterable[str]) -> Deps:
    """What may decide about rows: all that these relations hold."""
    deps: Deps = {}
    for unique_id in unique_ids:
        merge(deps, linker.node(unique_id).relation.whole(CONDITIONAL))
    return deps
