"""A folder of files with their SHA-256 sums, and whether it is still as it was written.

The sums are in ``SHA256SUMS``, one line a file as coreutils' ``sha256sum`` writes it, so that
``sha256sum --check SHA256SUMS`` reads it too. `verify` finds every file that was changed, removed,
added or renamed, and every change of ``SHA256SUMS`` itself that does not go with a changed file.

Who can change a file can also write its new sum into ``SHA256SUMS``: the sums alone show accidents, not
intent. The digest that `seal` returns is the sum of ``SHA256SUMS``; kept where the folder's owner cannot
change it, it shows any change at all. It does not say who made the folder: that takes a signature.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.page_documents import Difference, Verification
from dbt_ripple.secrets import scrub_bytes

SUMS: Final = "SHA256SUMS"
"""The file with the sums of all others."""

_PART: Final = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
_NAME: Final = re.compile(rf"{_PART}(?:/{_PART})*")
_LINE: Final = re.compile(rf"([0-9a-f]{{64}})  ({_NAME.pattern})")
_DIGEST: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_CHUNK: Final = 1 << 20


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """The content of ``SHA256SUMS``: one line a file, ordered by name.

    Args:
        files: by path, with slashes; letters, digits and ``._-`` only.
    """
    for name in files:
        assert _NAME.fullmatch(name) and name != SUMS, name
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return "".join(lines).encode()


def seal(files: Mapping[str, bytes], folder: Path) -> str:
    """Write files and their sums into a folder, which is new or empty.

    ``SHA256SUMS`` is written last: what was interrupted does not verify.

    Args:
        files: as for `sums_of`.
        folder: made if it is not there.

    Returns:
        The digest: SHA-256 of ``SHA256SUMS``, in hexadecimal digits.

    Raises:
        RippleError: the folder is not empty, or cannot be written.
    """
    files = {name: scrub_bytes(content) for name, content in files.items()}
    sums = sums_of(files)
    try:
        check_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in sorted(files.items()):
            path = folder.joinpath(*name.split("/"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (folder / SUMS).write_bytes(sums)
    except OSError as error:
        raise RippleError(
            f"cannot be written ({error.strerror})", str(folder), "name another folder"
        ) from error
    return hashlib.sha256(sums).hexdigest()


def check_empty(folder: Path) -> None:
    """Refuse to write over anything.

    Raises:
        RippleError: it is not a folder, or something is in it.
    """
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise RippleError("is not a folder", str(folder), "name a new or an empty folder")
    if next(folder.iterdir(), None) is not None:
        raise RippleError("the folder is not empty", str(folder), "name a new or an empty folder")


def given_digest(text: str) -> str:
    """A digest as it was typed.

    Raises:
        RippleError: it is none.

    Example:
        >>> given_digest("sha256:" + "AB" * 32) == "ab" * 32
        True
    """
    match = _DIGEST.fullmatch(text.strip().lower())
    if match is None:
        raise RippleError(
            "this is no SHA-256 digest",
            "--digest",
            "give the 64 hexadecimal digits that were printed",
        )
    return match[1]


def verify(folder: Path, digest: str | None = None) -> Verification:
    """Compare a folder with its ``SHA256SUMS``, and that with a digest.

    Args:
        folder: that `seal` wrote.
        digest: that `seal` returned; None where it is not known.

    Raises:
        RippleError: there is no such folder, it has no ``SHA256SUMS``, or it cannot be listed.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "no such folder"
        raise RippleError(what, str(folder), "name the folder that `dbt-ripple evidence` wrote")
    try:
        sums = (folder / SUMS).read_bytes() if _is_file(folder / SUMS) else None
        there = dict(_entries(folder, ""))
    except OSError as error:
        raise RippleError(
            f"cannot be read ({error.strerror})", str(error.filename or folder)
        ) from error
    if sums is None:
        raise RippleError(
            f"there is no file {SUMS} in it: it was removed, or this is no evidence pack",
            str(folder),
            "name the folder that `dbt-ripple evidence` wrote",
        )
    now = hashlib.sha256(sums).hexdigest()
    listed, differences = _read_sums(sums)
    if digest is not None and now != digest:
        differences.append(
            Difference(file=SUMS, what="digest", message=f"is another one: its digest is {now}")
        )
    for name, entry in there.items():
        if name == SUMS:
            continue
        if name not in listed and (entry != "folder" or not _holds(name, listed)):
            message = f"was added: {SUMS} does not list this {entry}"
            differences.append(Difference(file=name, what="added", message=message))
    for name, sum_ in listed.items():
        if name not in there:
            differences.append(
                Difference(file=name, what="removed", message="is not there any more")
            )
        elif there[name] != "file":
            message = f"is no file any more, but a {there[name]}"
            differences.append(Difference(file=name, what="changed", message=message))
        elif (problem := _differs(folder.joinpath(*name.split("/")), sum_)) is not None:
            differences.append(Difference(file=name, what="changed", message=problem))
    differences.sort(key=lambda difference: (difference.file, difference.what, difference.message))
    return Verification(
        intact=not differences,
        digest=now,
        digest_compared=digest is not None,
        files=len(listed),
        differences=differences,
    )


def _read_sums(content: bytes) -> tuple[dict[str, str], list[Difference]]:
    """The sums by file, and what is not as `sums_of` writes it."""
    listed: dict[str, str] = {}
    differences: list[Difference] = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        match = _LINE.fullmatch(line.decode("ascii", "replace"))
        if match is None or match[2] == SUMS or match[2] in listed:
            message = f"line {number} is not as it was written"
            differences.append(Difference(file=SUMS, what="sums", message=message))
        else:
            listed[match[2]] = match[1]
    written = "".join(f"{listed[name]}  {name}\n" for name in sorted(listed)).encode()
    if not differences and (content != written or not listed):
        message = "its lines are not as they were written"
        differences.append(Difference(file=SUMS, what="sums", message=message))
    return listed, differences


def _entries(folder: Path, above: str) -> Iterator[tuple[str, str]]:
    """Everything in a folder, without following links: its path and what it is."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = f"{above}{entry.name}"
            if entry.is_symlink():
                yield name, "link"
            elif entry.is_dir(follow_symlinks=False):
                yield name, "folder"
                yield from _entries(Path(entry.path), f"{name}/")
            else:
                yield name, "file" if entry.is_file(follow_symlinks=False) else "special file"


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _holds(folder: str, listed: Mapping[str, str]) -> bool:
    return any(name.startswith(f"{folder}/") for name in listed)


def _differs(path: Path, sum_: str) -> str | None:
    """What is wrong with a file; None where it has this sum."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if digest.hexdigest() == sum_ else "was changed: it has another SHA-256"
