"""What of base is compared with what of head: seeds by their files, and what has another name.

Of seeds on both sides: which of them can be compared column by column (rule 12).

Sources and tests may have another name on head: base gets head's names for them. A source is what its relation holds,
not what YAML calls it; and a test is what it asks. So where base's own node is gone and head has a new one that is the
same relation, or the same query over the same relations, the two are compared as one node. This only says what is
compared with what: whether anything differs is told by fingerprints, as of every other node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.graph.git import has_one_version
from dbt_ripple.graph.linking.seeds import SeedFiles, checksum
from dbt_ripple.graph.linking.sources import where_it_is
from dbt_ripple.jinja.text import normalised
from dbt_ripple.reasons import Code, Reason


@dataclass(slots=True)
class SeedPair:
    """The seed files of both sides, and the notes on them.

    Attributes:
        one_sided: whether the columns of an unchanged seed are known on one side only, by its own
            folder: no catalog lists them, and the file is at hand there.
    """

    base: SeedFiles
    head: SeedFiles
    one_sided: bool = False
    notes: list[Reason] = field(default_factory=list)


def pair_seeds(base: Project, head: Project, *, of_one: bool = False) -> SeedPair:
    """The files of the seeds that differ, each where it is at hand on both sides.

    A file serves either side whose checksum it has, so that a side that was made elsewhere finds
    what did not change in the other side's folder.

    Args:
        base: what is deployed.
        head: what is proposed.
        of_one: whether both are one project, of which a change is only supposed: its seeds are the same.
    """
    folders = [
        folder
        for project in (head, base)
        for folder in dict.fromkeys(
            node.root_path for node in project.of_type("seed") if node.root_path
        )
    ]
    changed: set[str] = set()
    by_content: set[str] = set()
    reordered: set[str] = set()
    formerly: dict[str, dict[str, str]] = {}
    differ: dict[str, bytes] = {}
    one_sided = False
    notes: list[Reason] = []
    files = SeedFiles(folders, changed)
    adapter = head.metadata.adapter_type
    for node in head.of_type("seed"):
        before = base.nodes.get(node.unique_id)
        if before is None:
            continue
        if checksum(node) != checksum(before):
            changed.add(node.unique_id)
            then, now = files.read(before), files.read(node)
            if (
                then is not None
                and now is not None
                and then.is_read_alike(adapter)
                and now.is_read_alike(adapter)
            ):
                by_content.add(node.unique_id)
                formerly[node.unique_id] = now.renamed_since(then)
                if then.bag == now.bag and then.values != now.values:
                    reordered.add(node.unique_id)
            continue
        own = SeedFiles()
        one_sided = one_sided or (
            (_listed(base, before) or own.read(before) is not None)
            != (_listed(head, node) or own.read(node) is not None)
        )
        if checksum(node)[0] == "path" and not of_one:
            differs, reason = _too_large(node, before, base, head)
            notes.append(Code.SEED_TOO_LARGE(name=node.name, because=reason))
            if differs:
                differ[node.unique_id] = b"head"
    return SeedPair(
        SeedFiles(folders, changed, by_content, reordered=reordered),
        SeedFiles(
            folders=folders,
            changed=changed,
            by_content=by_content,
            digests=differ,
            reordered=reordered,
            formerly=formerly,
        ),
        one_sided,
        notes,
    )


def _listed(project: Project, seed: Node) -> bool:
    return bool(project.catalog.get(seed.unique_id))


def _too_large(node: Node, before: Node, base: Project, head: Project) -> tuple[bool, Reason]:
    """Whether a seed without a checksum is to be taken as changed, and the note on it."""
    file = Path(node.root_path or "") / node.original_file_path
    then = Path(before.root_path or "") / before.original_file_path
    try:
        if file != then and then.is_file():
            differs = file.read_bytes() != then.read_bytes()
            return differs, Code.SEED_FILES_DIFFER() if differs else Code.SEED_FILES_EQUAL()
        written = file.stat().st_mtime
    except OSError:
        return True, Code.SEED_FILE_MISSING()
    made = base.metadata
    if (
        file == then
        and made.user_id is not None  # of one machine: two containers may have files in one place
        and made.user_id == head.metadata.user_id
        and made.generated_at is not None
        and written <= made.generated_at.timestamp()
    ):
        return False, Code.SEED_FILE_OLDER()
    if has_one_version(file):  # base was made of a commit, elsewhere or before this checkout
        return False, Code.SEED_FILE_NEVER_EDITED()
    return True, Code.SEED_FILE_NEWER() if file == then else Code.SEED_FILE_OF_BASE_MISSING()


def with_names_of_head(base: Project, head: Project) -> tuple[Project, Project]:
    """Base, with head's unique_id for each source and test that head has under another name.

    Returns:
        Base, and head with the columns of these sources that only base's catalog lists.
    """
    if not base.nodes.keys() - head.nodes.keys() or not head.nodes.keys() - base.nodes.keys():
        return base, head
    gone = [base.nodes[u] for u in base.nodes if u not in head.nodes]
    new = [head.nodes[u] for u in head.nodes if u not in base.nodes]
    names = _same_sources(gone, new)
    if names:
        base = _renamed(base, names)
        listed = base.catalog
        columns = {u: listed[u] for u in names.values() if u in listed and u not in head.catalog}
        if columns:
            head = head.having(catalog={**head.catalog, **columns})
    names = _same_tests(base, head, gone, new)
    return _renamed(base, names) if names else base, head


def _same_sources(gone: Iterable[Node], new: Iterable[Node]) -> dict[str, str]:
    """Base's sources that are gone, each with head's new one that is the same relation."""
    there = [node for node in gone if node.resource_type == "source"]
    names = {}
    for node in new:
        if node.resource_type != "source":
            continue
        same = next((then for then in there if _same_relation(then, node)), None)
        if same is not None:
            there.remove(same)
            names[same.unique_id] = node.unique_id
    return names


def _same_relation(then: Node, now: Node) -> bool:
    """Whether two sources are one relation; the default schema is the name of the source."""
    return where_it_is(then) == where_it_is(now) and (
        now.unrendered_schema is not None
        or (then.relation_name is not None and then.relation_name == now.relation_name)
    )


def _same_tests(
    base: Project, head: Project, gone: Iterable[Node], new: Iterable[Node]
) -> dict[str, str]:
    """Base's tests that are gone, each with head's new one that runs the same SQL."""
    there = [node.unique_id for node in gone if node.resource_type == "test" and node.compiled_code]
    if not there:
        return {}
    relations = other_names(base, head)
    tests: dict[tuple[str, ...], list[str]] = {}
    for unique_id in there:
        sql = rename(base.nodes[unique_id].compiled_code or "", relations)
        asked = (normalised(sql), *sorted(base.parents[unique_id]))
        tests.setdefault(asked, []).append(unique_id)
    names = {}
    for node in new:
        if node.resource_type == "test" and node.compiled_code:
            asked = (normalised(node.compiled_code), *sorted(head.parents[node.unique_id]))
            if same := tests.get(asked):
                names[same.pop(0)] = node.unique_id
    return names


def _renamed(project: Project, names: dict[str, str]) -> Project:
    """A project with other unique_ids of some nodes."""

    def name_on_head(unique_id: str) -> str:
        return names.get(unique_id, unique_id)

    nodes = {}
    for unique_id, node in project.nodes.items():
        if unique_id in names:
            node = replace(node, unique_id=names[unique_id])
        if node.attached_node in names:
            node = replace(node, attached_node=names[node.attached_node])
        if not names.keys().isdisjoint(node.depends_on.nodes):
            above = replace(node.depends_on, nodes=[*map(name_on_head, node.depends_on.nodes)])
            node = replace(node, depends_on=above)
        nodes[name_on_head(unique_id)] = node
    return project.having(
        nodes=nodes,
        parents={
            name_on_head(u): [*map(name_on_head, above)] for u, above in project.parents.items()
        },
        children={
            name_on_head(u): [*map(name_on_head, below)] for u, below in project.children.items()
        },
        catalog={name_on_head(u): columns for u, columns in project.catalog.items()},
        whole_catalog={name_on_head(u): columns for u, columns in project.types.items()},
        run_results=[
            replace(result, unique_id=name_on_head(result.unique_id))
            for result in project.run_results
        ],
    )
