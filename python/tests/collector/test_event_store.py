"""The store: on disk or not at all, once, and whole after a crash."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from dbt_ripple.collector.event_store import (
    EventStore,
    Stored,
    StoreError,
    segments,
    stored_lines,
)
from dbt_ripple.errors import RippleError

LINES = [json.dumps({"number": number, "text": "x" * 40}).encode() for number in range(100)]


def test_what_is_stored_is_read(tmp_path: Path) -> None:
    with EventStore(tmp_path / "a" / "b") as store:
        assert store.append([LINES[:2], [], LINES[2:3]]) == [
            Stored(2, 0),
            Stored(0, 0),
            Stored(1, 0),
        ]
    assert [*stored_lines(tmp_path / "a" / "b")] == LINES[:3]


def test_the_same_event_is_stored_once(tmp_path: Path) -> None:
    with EventStore(tmp_path) as store:
        assert store.append([[LINES[0]], [LINES[0], LINES[1]]]) == [Stored(1, 0), Stored(1, 1)]
        assert store.append([[LINES[1], LINES[1]]]) == [Stored(0, 2)]
    with EventStore(tmp_path) as store:
        assert store.append([LINES[:3]]) == [Stored(1, 2)]
    assert [*stored_lines(tmp_path)] == LINES[:3]


def test_so_many_events_are_remembered(tmp_path: Path) -> None:
    with EventStore(tmp_path, remembered=10, segment_bytes=200) as store:
        for line in LINES:
            store.append([[line]])
        assert store.append([[LINES[0]]]) == [Stored(1, 0)]
        assert store.append([[LINES[99]]]) == [Stored(0, 1)]
    with EventStore(tmp_path, remembered=10) as store:
        assert store.append([[LINES[50]]]) == [Stored(1, 0)]
        assert store.append([LINES[92:100]]) == [Stored(0, 8)]


def test_segments_are_in_order(tmp_path: Path) -> None:
    with EventStore(tmp_path, segment_bytes=200) as store:
        for line in LINES[:50]:
            store.append([[line]])
    with EventStore(tmp_path, segment_bytes=200) as store:
        for line in LINES[50:]:
            store.append([[line]])
    assert len(segments(tmp_path)) > 10
    assert max(path.stat().st_size for path in segments(tmp_path)) < 400
    assert [*stored_lines(tmp_path)] == LINES


def test_another_collector_is_refused(tmp_path: Path) -> None:
    with EventStore(tmp_path), pytest.raises(RippleError, match="another dbt-ripple collect"):
        EventStore(tmp_path)
    EventStore(tmp_path).close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RippleError, match="cannot be written"):
        EventStore(tmp_path / "file" / "store")


@pytest.mark.parametrize("garbage", [b"", b"\0" * 5000, b"\0" * 20 + b"\n", b'{"a\n{"b', b"\n\n"])
def test_wherever_the_process_died(tmp_path: Path, garbage: bytes) -> None:
    whole = b"".join(line + b"\n" for line in LINES[:3])
    for end in range(len(whole) + 1):
        if not garbage and whole[end - 1 : end] in (b"\n", b""):
            continue
        if garbage and whole[end - 1 : end] not in (b"\n", b""):
            continue
        path = tmp_path / "events-00000001.ndjson"
        path.write_bytes(whole[:end] + garbage)
        warnings: list[str] = []
        with EventStore(tmp_path, warnings.append) as store:
            kept = whole[:end].count(b"\n")
            assert [*stored_lines(tmp_path)] == LINES[:kept]
            assert len(warnings) == 1, (end, warnings)
            assert "events-00000001.ndjson: cut off " in warnings[0]
            assert store.append([LINES[:4]]) == [Stored(4 - kept, kept)]
        assert sorted(stored_lines(tmp_path)) == sorted(LINES[:4])
        EventStore(tmp_path, warnings.append).close()
        assert len(warnings) == 1
        path.unlink()


def test_a_line_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    long = json.dumps({"text": "x" * 1_000_000}).encode()
    path = tmp_path / "events-00000001.ndjson"
    path.write_bytes(LINES[0] + b"\n" + long + b"\n" + long[:-5])
    EventStore(tmp_path).close()
    assert [*stored_lines(tmp_path)] == [LINES[0], long]


def test_a_torn_line_in_an_older_segment(tmp_path: Path) -> None:
    (tmp_path / "events-00000001.ndjson").write_bytes(LINES[0] + b"\n" + LINES[1][:5])
    (tmp_path / "events-00000002.ndjson").write_bytes(LINES[2] + b"\n")
    EventStore(tmp_path).close()
    assert [*stored_lines(tmp_path)] == [LINES[0], LINES[2]]
    assert (tmp_path / "events-00000001.ndjson").read_bytes() == LINES[0] + b"\n"


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_does_not_synchronise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The file is not trusted again: a second fsync of it could succeed with the data gone."""

    def fails(_: int) -> None:
        raise OSError(number, os.strerror(number))

    with EventStore(tmp_path) as store:
        store.append([LINES[:1]])
        for _ in range(5):
            with monkeypatch.context() as patched:
                patched.setattr(os, "fdatasync", fails)
                patched.setattr(os, "fsync", fails)
                with pytest.raises(StoreError) as error:
                    store.append([LINES[1:3]])
            assert error.value.is_full == (number == errno.ENOSPC)
            assert [*stored_lines(tmp_path)] == LINES[:1]
        assert store.append([LINES[:3]]) == [Stored(2, 1)]
    assert [*stored_lines(tmp_path)] == LINES[:3]
    assert len(segments(tmp_path)) == 2


def test_a_write_that_stops_half_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, cut = os.write, os.ftruncate

    def writes_half(file: int, text: bytes) -> int:
        if len(text) < 20:
            raise OSError(errno.ENOSPC, "full")
        return write(file, bytes(text[: len(text) // 2]))

    def cannot(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    with EventStore(tmp_path) as store:
        store.append([LINES[:1]])
        monkeypatch.setattr(os, "write", writes_half)
        with pytest.raises(StoreError):
            store.append([LINES[1:3]])
        assert [*stored_lines(tmp_path)] == LINES[:1]
        # While the half cannot be taken back, nothing is written behind it.
        monkeypatch.setattr(os, "ftruncate", cannot)
        with pytest.raises(StoreError):
            store.append([LINES[1:3]])
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(StoreError):
            store.append([LINES[3:4]])
        monkeypatch.setattr(os, "ftruncate", cut)
        store.append([LINES[4:5]])
    assert [*stored_lines(tmp_path)] == [LINES[0], LINES[4]]
    assert len(segments(tmp_path)) == 1


def test_a_line_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "events-00000001.ndjson").write_bytes(LINES[0] + b"\n" + LINES[1])
    assert [*stored_lines(tmp_path)] == LINES[:1]
