"""Seeds on both sides: which of them can be compared column by column (rule 12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.git_history import has_one_version
from dbt_ripple.graph.linking.seeds import SeedFiles, checksum
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
