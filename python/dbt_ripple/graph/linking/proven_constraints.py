"""What is proven of the rows of a relation: by the files of seeds, and by tests that return none (rules 14 and 15).

A test's meaning is read off its own query, so that it does not matter what it is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.containment import (
    CountAbove,
    GroupedRows,
    IsNull,
    Rows,
    SemiJoin,
    conditions,
    sides,
)
from dbt_ripple.flow.identifiers import fold_stored
from dbt_ripple.flow.row_constraints import Facts, KnownConstraints, Proof, Related, Unique
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.seeds import (
    INTEGER,
    LOADERS_THAT_GUESS,
    SeedFiles,
    is_a_word,
    rows_of,
    types_of_seed,
)


@dataclass(frozen=True, slots=True)
class SeedColumn:
    """What a seed's file proves of a column, whichever loader reads it.

    Attributes:
        whole: no value of it is NULL once it is loaded.
        unique: no two values are equal once they are, under any collation.
        values: what it holds, to the letter; None where two loaded columns that hold the same may
            not be equal.
    """

    whole: bool
    unique: bool
    values: frozenset[str] | None


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
        proved = proved_columns(linker.seeds, node)
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


def proved_columns(files: SeedFiles, node: Node) -> dict[str, SeedColumn]:
    """What the file of a seed proves of its columns, by name, without those of which it proves nothing."""
    content = files.content(node)
    rows = rows_of(content, node.config.get("delimiter")) if content is not None else None
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return {}
    header = [name.strip() for name in rows[0]]
    if len({name.lower() for name in header}) < len(header):
        return {}
    column_types = node.config.get("column_types")
    types = (
        {str(k).lower(): str(v) for k, v in column_types.items()}
        if isinstance(column_types, dict)
        else {}
    )
    proved = (
        (name, _proved([row[i] for row in rows[1:]], types.get(name.lower())))
        for i, name in enumerate(header)
    )
    return {name: column for name, column in proved if column is not None}


def _proved(values: list[str], type_: str | None) -> SeedColumn | None:
    """What values of one column prove; None where it depends on how they are loaded.

    Looked at are columns of whole numbers and of text: dates, fractions and truth values are read,
    rounded and cut in too many ways.
    """
    plain = (type_ or "").strip().lower()
    longest = _DIGITS.get(plain, 0) if type_ else _LONGEST
    if all(map(INTEGER.fullmatch, values)) and (longest or plain in _TEXTS):
        fits = plain in _TEXTS or all(len(v.lstrip("-")) <= longest for v in values)
        return (
            SeedColumn(True, len(set(values)) == len(values), frozenset(values)) if fits else None
        )
    if not any(map(is_a_word, values)) or (type_ and plain not in _TEXTS):
        return None
    whole = all(v.strip() and v.strip().lower() not in _NULLS for v in values)
    ascii_ = all(v.isascii() and v.isprintable() for v in values)
    alike = {v.strip().lower() for v in values}
    return SeedColumn(
        whole,
        whole and ascii_ and len(alike) == len(values),
        frozenset(values) if whole else None,
    )


_LONGEST: Final = 15
"""Digits of a whole number that any type a loader may choose keeps."""
_DIGITS: Final = {
    **dict.fromkeys(("bigint", "int64", "long"), _LONGEST),
    **dict.fromkeys(("int", "integer"), 9),
}
_TEXTS: Final = frozenset(("string", "text", "varchar"))
_NULLS: Final = frozenset(". n/a na nan none null \\n".split())
"""What a loader may take for NULL, in lower case, besides nothing."""


def note_constraints(rows: Rows, of: Facts, proof: Proof) -> None:
    """Note what it says of a relation that a query returns no row: uniqueness and its like.

    Args:
        rows: of the query.
        of: the facts of the relation, which are added to.
        proof: why the query returns no row.
    """
    met = conditions(rows)
    _, first = sides(rows)[0]
    if isinstance(first, GroupedRows) and len(sides(rows)) == 1 and len(met) == 1:
        (condition,) = met.values()
        if isinstance(condition, CountAbove) and condition.number == 1 and condition.rows:
            beyond = _beyond(first.rows, of.rows)
            if first.keys and beyond is not None and _not_null_only(beyond, first.keys):
                of.unique.append(Unique(first.keys, proof, not beyond))
    added = _beyond(rows, of.rows)
    if not added:
        return
    matches = [c for c in added if isinstance(c, SemiJoin)]
    nulls = [c for c in added if isinstance(c, IsNull)]
    if len(added) == 1 and nulls and not nulls[0].negated:
        of.not_null[nulls[0].column] = proof
    elif len(matches) == 1 and matches[0].negated and matches[0].child:
        match = matches[0]
        others = [c for c in added if c is not match]
        if _not_null_only(others, frozenset({match.child})):
            of.related.setdefault(match.child, []).append(
                Related(match.rows.fp, match.parent, proof)
            )


def _beyond(rows: Rows, of: Rows) -> list[object] | None:
    """The conditions that rows of a relation meet besides its own; None where they are others."""
    if [(t, r.fp) for t, r in sides(rows)] != [(t, r.fp) for t, r in sides(of)]:
        return None
    own = conditions(of)
    if not own.keys() <= conditions(rows).keys():
        return None
    return [c for key, c in conditions(rows).items() if key not in own]


def _not_null_only(conditions: Iterable[object], columns: frozenset[bytes]) -> bool:
    return all(isinstance(c, IsNull) and c.negated and c.column in columns for c in conditions)
