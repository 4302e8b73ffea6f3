"""The cache on disk: what is kept, what is not, and what becomes of a damaged file."""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import time
from pathlib import Path

import pytest

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph import cache as caching
from dbt_ripple.graph.cache import FILE, Cache, engine


def kept(folder: Path, *names: bytes) -> list[bytes | None]:
    with Cache(folder) as cache:
        return [cache.get(cache.key(name)) for name in names]


def put(folder: Path, warn: list[str] | None = None, **values: bytes) -> None:
    with Cache(folder, warn=None if warn is None else warn.append) as cache:
        for name, value in values.items():
            cache.put(cache.key(name.encode()), value)


def test_what_is_put_is_there_for_the_next_process(tmp_path: Path) -> None:
    put(tmp_path, a=b"1", b=b"2" * 100_000, empty=b"")
    assert kept(tmp_path, b"a", b"b", b"empty", b"c") == [b"1", b"2" * 100_000, b"", None]
    put(tmp_path, a=b"other")
    assert kept(tmp_path, b"a") == [b"other"]


def test_a_value_is_at_hand_before_it_is_written(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        cache.put(b"k", b"v")
        assert cache.get(b"k") == b"v"
        assert cache.has(b"k")
        assert not cache.has(b"other")


def test_another_engine_sees_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, a=b"1")
    monkeypatch.setattr(caching, "engine", lambda: b"another")
    assert kept(tmp_path, b"a") == [None]
    monkeypatch.undo()
    assert kept(tmp_path, b"a") == [b"1"]


@pytest.mark.parametrize("room", ["artifacts", "flow", "graph"])
def test_the_engine_is_the_code_of_the_rooms_that_analyse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    package = tmp_path / "dbt_ripple"
    for name in ("artifacts", "flow", "graph", "cli"):
        (package / name).mkdir(parents=True)
        (package / name / "code.py").write_text("x = 1")
    monkeypatch.setattr(caching, "__file__", str(package / "graph" / "cache.py"))
    made = engine.__wrapped__
    before = made()
    (package / "cli" / "code.py").write_text("x = 2")
    assert made() == before
    (package / room / "code.py").write_text("x = 2")
    assert made() != before


def test_the_engine_is_the_version_of_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    before = engine.__wrapped__()
    monkeypatch.setattr(caching, "version", lambda _name: "99.0")
    assert engine.__wrapped__() != before


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"garbage",
        lambda content: b"garbage" * 10_000,
        lambda content: content[: len(content) // 2],
        lambda content: content[:100] + os.urandom(len(content) - 100),
        lambda content: content[:4096] + bytes(len(content) - 4096),
        lambda content: content[:20_000] + os.urandom(4_000) + content[24_000:],
    ],
    ids=["garbage", "more garbage", "cut", "noise", "zeros", "a hole"],
)
def test_a_damaged_file_is_no_wrong_answer_and_heals(tmp_path: Path, damage: object) -> None:
    values = {f"k{i}": random.Random(i).randbytes(500) for i in range(300)}
    put(tmp_path, **values)
    file = tmp_path / FILE
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    warnings: list[str] = []
    with Cache(tmp_path, warn=warnings.append) as cache:
        for name, value in values.items():
            assert cache.get(cache.key(name.encode())) in (None, value)
    put(tmp_path, warnings, **values)
    assert len(warnings) <= 1
    assert kept(tmp_path, *(name.encode() for name in values)) == list(values.values())


def test_a_log_that_was_cut_loses_only_what_it_held(tmp_path: Path) -> None:
    put(tmp_path, a=b"1")
    cache = Cache(tmp_path)
    cache.put(cache.key(b"b"), b"2" * 50_000)
    cache.write()
    log = tmp_path / f"{FILE}-wal"
    held = log.read_bytes()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / FILE).write_bytes((tmp_path / FILE).read_bytes())
    (copy / f"{FILE}-wal").write_bytes(held[: len(held) // 2])  # as if the machine went down
    cache.close()
    assert kept(copy, b"a", b"b") == [b"1", None]


def test_a_damaged_file_is_reported_once_and_moved_aside(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 1000)
    warnings: list[str] = []
    put(tmp_path, warnings, a=b"1")
    put(tmp_path, warnings, b=b"2")
    assert len(warnings) == 1
    assert "damaged" in warnings[0]
    assert "\n" not in warnings[0]
    assert (tmp_path / f"{FILE}.aside").read_bytes().startswith(b"not a database")
    assert kept(tmp_path, b"a", b"b") == [b"1", b"2"]


def test_somebody_elses_database_is_moved_aside_whole(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("create table mine (x)")
        other.execute("insert into mine values (42)")
    other.close()
    warnings: list[str] = []
    put(tmp_path, warnings, a=b"1")
    assert ["not ours" in line for line in warnings] == [True]
    assert kept(tmp_path, b"a") == [b"1"]
    aside = sqlite3.connect(tmp_path / f"{FILE}.aside")
    assert aside.execute("select x from mine").fetchall() == [(42,)]
    aside.close()


def test_an_older_layout_is_moved_aside(tmp_path: Path) -> None:
    put(tmp_path, a=b"1")
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("pragma user_version = 0")
    other.close()
    warnings: list[str] = []
    put(tmp_path, warnings, b=b"2")
    assert len(warnings) == 1
    assert kept(tmp_path, b"a", b"b") == [None, b"2"]


def test_where_nothing_can_be_written_it_works_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warnings: list[str] = []
    put(tmp_path / "file" / "folder", warnings, a=b"1")
    assert len(warnings) == 1
    assert "not used" in warnings[0]


def test_a_user_without_a_home_works_without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "DBT_RIPPLE_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "~")
    warnings: list[str] = []
    with Cache(warn=warnings.append) as cache:
        cache.put(b"a", b"1")
    assert len(warnings) == 1
    assert "home" in warnings[0]


def test_a_full_disk_is_no_error(tmp_path: Path) -> None:
    put(tmp_path, a=b"1")
    warnings: list[str] = []
    cache = Cache(tmp_path, warn=warnings.append)
    assert cache._connection is not None
    cache._connection.execute("pragma max_page_count = 10")  # what SQLite then says is: disk full
    cache.put(cache.key(b"b"), os.urandom(1_000_000))
    cache.close()
    assert len(warnings) == 1
    assert "full" in warnings[0]
    assert kept(tmp_path, b"a", b"b") == [b"1", None]


def test_what_was_not_used_for_longest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 86_400
    now = 1_000 * day
    limit = 2_000_000

    def run(days: int, reads: list[str], **values: bytes) -> list[bool]:
        monkeypatch.setattr(time, "time", lambda: now + days * day)
        with Cache(tmp_path, limit=limit) as cache:
            hits = [cache.get(cache.key(name.encode())) is not None for name in reads]
            for name, value in values.items():
                cache.put(cache.key(name.encode()), value)
        return hits

    run(0, [], **{f"old{i}": os.urandom(50_000) for i in range(15)})
    run(5, [], **{f"new{i}": os.urandom(50_000) for i in range(15)})
    assert all(run(10, ["old0", "old1"]))  # which makes these two the newest
    run(11, [], **{f"last{i}": os.urandom(50_000) for i in range(15)})
    assert run(12, ["old0", "old1", "last0", "last14"]) == [True] * 4
    assert not any(run(12, [f"old{i}" for i in range(2, 15)]))
    assert (tmp_path / FILE).stat().st_size < limit + 15 * 70_000


def _work(folder: Path, seed: int, rounds: int) -> list[str]:
    """Read and write a small cache at random; everything found must be what belongs there."""
    rng = random.Random(seed)
    warnings: list[str] = []
    wrong: list[str] = []
    for _ in range(rounds):
        with Cache(folder, limit=1_500_000, warn=warnings.append) as cache:
            for _ in range(60):
                name = str(rng.randrange(300)).encode()
                value = random.Random(name).randbytes(20_000)
                kept = cache.get(cache.key(name))
                if kept is None:
                    cache.put(cache.key(name), value)
                elif kept != value:
                    wrong.append(f"{name!r} is not what was put")
    return wrong + warnings


def test_many_processes_read_and_write_while_entries_go(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        outcomes = pool.starmap(_work, [(tmp_path, seed, 15) for seed in range(4)])
    assert outcomes == [[]] * 4
    check = sqlite3.connect(tmp_path / FILE)
    assert check.execute("pragma integrity_check").fetchone() == ("ok",)
    assert check.execute("select count(*) from entries").fetchone()[0] > 20
    check.close()


def test_many_processes_find_the_same_damaged_file(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 1000)
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        outcomes = pool.starmap(_work, [(tmp_path, seed, 3) for seed in range(4)])
    assert not [line for lines in outcomes for line in lines if "is not what was put" in line]
    assert any("damaged" in line for lines in outcomes for line in lines)
    assert _work(tmp_path, 9, 1) == []


def test_a_process_that_dies_halfway_leaves_what_was_there(tmp_path: Path) -> None:
    put(tmp_path, a=b"1")
    context = multiprocessing.get_context("spawn")
    dying = context.Process(target=_die, args=(tmp_path,))
    dying.start()
    dying.join()
    assert dying.exitcode == 9
    assert kept(tmp_path, b"a", b"b") == [b"1", None]


def _die(folder: Path) -> None:
    cache = Cache(folder)
    assert cache._connection is not None
    cache._connection.execute("begin immediate")
    cache._connection.execute(
        "insert into entries values (?, 0, 1, ?)", (cache.key(b"b"), digest(b"half") * 100_000)
    )
    os._exit(9)
