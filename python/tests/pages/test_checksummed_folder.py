"""A pack and its sums: any change is found, and what only the digest shows is said."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from dbt_ripple.errors import RippleError
from dbt_ripple.pages.checksummed_folder import SUMS, given_digest, seal, sums_of, verify

FILES = {
    "index.html": b"<!doctype html>\n" + b"a page " * 200,
    "evidence.json": b'{"a": 1}\n',
    "definitions/one-01.sql": b"select 1",
    "definitions/two-02.sql": b"select 2",
    "empty.txt": b"",
}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    seal(FILES, tmp_path / "pack")
    return tmp_path / "pack"


def found(pack: Path, digest: str | None = None) -> list[tuple[str, str]]:
    verification = verify(pack, digest)
    assert verification.intact is (not verification.differences)
    return [(one.file, one.what) for one in verification.differences]


def test_what_was_written_is_intact(tmp_path: Path) -> None:
    digest = seal(FILES, tmp_path / "pack")
    assert found(tmp_path / "pack", digest) == []
    assert digest == hashlib.sha256((tmp_path / "pack" / SUMS).read_bytes()).hexdigest()
    assert verify(tmp_path / "pack").files == len(FILES)


def test_coreutils_reads_the_sums(pack: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum on this machine")
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", SUMS], cwd=pack, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_bit_that_flips_anywhere_is_found(pack: Path) -> None:
    chance = random.Random(18)
    for name in [*FILES, SUMS]:
        path = pack / name
        content = path.read_bytes()
        places = range(len(content)) if name == SUMS else {0, len(content) - 1}
        drawn = {chance.randrange(len(content)) for _ in range(25)} if content else set()
        for place in sorted({p for p in places if 0 <= p < len(content)} | drawn):
            flipped = bytearray(content)
            flipped[place] ^= 1 << chance.randrange(8)
            path.write_bytes(bytes(flipped))
            differences = found(pack)
            assert differences, (name, place)
            if name != SUMS:
                assert differences == [(name, "changed")]
        path.write_bytes(content)
        path.write_bytes(content + b"\0")
        assert found(pack), name
        if content:
            path.write_bytes(content[:-1])
            assert found(pack), name
        path.write_bytes(content)
    assert found(pack) == []


def test_files_that_come_go_or_have_another_name(pack: Path) -> None:
    (pack / "more.txt").write_text("more")
    (pack / "definitions" / ".hidden").write_text("")
    assert found(pack) == [("definitions/.hidden", "added"), ("more.txt", "added")]
    (pack / "more.txt").unlink()
    (pack / "definitions" / ".hidden").unlink()
    (pack / "folder").mkdir()
    assert found(pack) == [("folder", "added")]
    (pack / "folder").rmdir()
    (pack / "evidence.json").rename(pack / "Evidence.json")
    assert found(pack) == [("Evidence.json", "added"), ("evidence.json", "removed")]
    (pack / "Evidence.json").unlink()
    assert found(pack) == [("evidence.json", "removed")]


def test_two_files_that_change_places_are_found(pack: Path) -> None:
    one, two = pack / "definitions" / "one-01.sql", pack / "definitions" / "two-02.sql"
    one.rename(pack / "x")
    two.rename(one)
    (pack / "x").rename(two)
    assert [what for _, what in found(pack)] == ["changed", "changed"]


def test_a_link_in_the_place_of_a_file_is_found(pack: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    shutil.move(pack / "evidence.json", outside)
    try:
        (pack / "evidence.json").symlink_to(outside)
    except OSError:
        pytest.skip("this system makes no links")
    assert found(pack) == [("evidence.json", "changed")]
    (pack / "evidence.json").unlink()
    shutil.move(outside, pack / "evidence.json")
    (pack / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    assert found(pack) == [("elsewhere", "added")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_what_is_no_file_is_not_read(pack: Path) -> None:
    (pack / "evidence.json").unlink()
    os.mkfifo(pack / "evidence.json")
    assert found(pack) == [("evidence.json", "changed")]


def test_who_writes_the_new_sums_too_is_found_by_the_digest_only(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    digest = seal(FILES, pack)
    changed = {**FILES, "evidence.json": b'{"a": 2}\n'}
    (pack / "evidence.json").write_bytes(changed["evidence.json"])
    (pack / SUMS).write_bytes(sums_of(changed))
    assert found(pack) == []
    assert verify(pack).digest_compared is False
    assert found(pack, digest) == [(SUMS, "digest")]
    assert verify(pack, digest).digest_compared is True


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text + text.split(b"\n")[0] + b"\n",
        lambda text: b"\n".join(sorted(text.split(b"\n")[:-1], reverse=True)) + b"\n",
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text[:-1],
        lambda text: text + b"\n",
        lambda text: text.replace(b"  ", b" *"),
        lambda text: text.upper(),
        lambda text: b"",
        lambda text: text + b"0" * 64 + b"  ../outside\n",
        lambda text: text + b"0" * 64 + b"  /etc/passwd\n",
    ],
)
def test_sums_that_are_written_otherwise_are_found(pack: Path, spoil: object) -> None:
    path = pack / SUMS
    path.write_bytes(spoil(path.read_bytes()))  # type: ignore[operator]
    assert (SUMS, "sums") in found(pack)


def test_what_was_interrupted_does_not_verify(pack: Path) -> None:
    (pack / SUMS).unlink()
    with pytest.raises(RippleError, match="there is no file SHA256SUMS in it"):
        verify(pack)
    with pytest.raises(RippleError, match="no such folder"):
        verify(pack / "nowhere")
    with pytest.raises(RippleError, match="is not a folder"):
        verify(pack / "index.html")


def test_nothing_is_written_over(pack: Path, tmp_path: Path) -> None:
    with pytest.raises(RippleError, match="not empty"):
        seal(FILES, pack)
    with pytest.raises(RippleError, match="is not a folder"):
        seal(FILES, pack / "index.html")
    assert found(pack) == []
    (tmp_path / "empty").mkdir()
    seal(FILES, tmp_path / "empty")
    assert found(tmp_path / "empty") == []


@pytest.mark.parametrize("text", ["", "abc", "g" * 64, "a" * 65, "md5:" + "a" * 64])
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(RippleError, match="no SHA-256 digest"):
        given_digest(text)
