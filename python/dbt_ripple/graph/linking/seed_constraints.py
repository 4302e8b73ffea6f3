"""What the files of seeds prove of their columns (rules 14 and 15)."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_ripple.flow.identifiers import fold_stored
from dbt_ripple.flow.row_constraints import Facts, KnownConstraints, Proof, Related, Unique
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.seeds import types_of_seed
from dbt_ripple.graph.seed_files import LOADERS_THAT_GUESS


def note_constraints_of_files(
    linker: Linker, seeds: Iterable[str], analysis: Analysis, known_constraints: KnownConstraints
) -> None:
    """Note what the files of seeds prove: values that are there, keys, and what is among keys.

    Args:
        linker: of the project, in a mode that gives relations facts.
        seeds: whose relation is known to hold what their file does, by unique_id.
        analysis: of the project; what it has a reason for is left out.
        known_constraints: where the values of text columns are noted.
    """
    context = linker.context
    keys: dict[frozenset[str], list[tuple[bytes, bytes, Proof]]] = {}
    columns: list[tuple[Facts, bytes, frozenset[str]]] = []
    for unique_id in seeds:
        node = linker.project.nodes[unique_id]
        if context.config_fingerprints.of(node) or unique_id in context.hooks.writing:
            continue
        proved = linker.seeds.columns(node)
        if not proved:
            continue
        guesses = linker.project.metadata.adapter_type in LOADERS_THAT_GUESS
        if guesses and ((file := linker.seeds.read(node)) is None or not file.plain):
            continue
        relation = linker.node(unique_id).relation
        facts = relation.facts
        if facts is None or analysis.nodes[unique_id].reason:
            continue
        proof = Proof(frozenset(), f"by the file of {node.display_name}")
        texts = {n.lower() for n, type_ in types_of_seed(linker, node) if type_ == "text"}
        by_key = relation.columns_by_key()
        for name, column in proved.items():
            listed = by_key.get(fold_stored(name, linker.dialect))
            if listed is None:
                continue
            fp = listed[0]
            if column.whole:
                facts.not_null.setdefault(fp, proof)
            if column.unique:
                facts.unique.append(Unique(frozenset({fp}), proof, True))
            if column.values is not None:
                if name.lower() in texts:
                    known_constraints.loaded(fp, column.values)
                columns.append((facts, fp, column.values))
                if column.unique:
                    keys.setdefault(column.values, []).append((relation.rows.fp, fp, proof))
    for facts, child, values in columns:
        for parent, same in keys.items():
            if values <= parent:
                facts.related.setdefault(child, []).extend(Related(*key) for key in same)
