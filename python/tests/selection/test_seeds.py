"""Rule 12: a seed is its file, and where both files are at hand, column by column."""

from __future__ import annotations

import hashlib
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hand_made import check, names, node, picked, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import gate
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.selection.select import select

OLD = "sku,price,name\na,1.50,Tea\nb,2,Pot\n"
SEED = "seed.p.prices"


def side(
    root: Path | None, text: str, *, written: str | None = None, listed: bool = True, **config: Any
) -> Project:
    """A seed and a test of each of its columns; its file holds ``written``, or else ``text``."""
    if root is not None:
        (root / "seeds").mkdir(parents=True, exist_ok=True)
        content = text if written is None else written
        (root / "seeds" / "prices.csv").write_text(content, encoding="utf-8")
    seed = node(
        SEED,
        config=config,
        root_path=str(root or "/nowhere"),
        original_file_path="seeds/prices.csv",
        checksum={"name": "sha256", "checksum": hashlib.sha256(text.strip().encode()).hexdigest()},
    )
    columns = ["sku", "price", "name"]
    tests = [check(f"on_{c}", f"select {c} from s.prices", SEED) for c in columns]
    everything = check("on_all", "select * from s.prices", SEED)
    catalog = {SEED: columns} if listed else None
    return project(seed, *tests, everything, catalog=catalog)


@pytest.mark.parametrize("listed", [True, False])
def test_a_corrected_value_changes_its_column_only(tmp_path: Path, listed: bool) -> None:
    base = side(tmp_path / "base", OLD, listed=listed)
    head = side(tmp_path / "head", OLD.replace("1.50", "1.75"), listed=listed)
    assert names(base, head) == ["on_price", "on_all"]
    assert picked(base, head).models == [SEED]


def loaded(root: Path, text: str, adapter: str = "spark") -> dict[str, str]:
    """The fingerprint of each column, and of the rows, of a seed as ``load`` writes them: with no other side."""
    made = side(root, text)
    made = project(*made.nodes.values(), catalog={SEED: ["sku", "price", "name"]}, adapter=adapter)
    analysis = analyse(made, own=True, seeds=SeedFiles.by_their_values(made)).nodes[SEED]
    columns = dict(zip(analysis.columns, analysis.fingerprints, strict=True))
    return {**columns, "rows": analysis.rows_fingerprint}


def loaded_otherwise(tmp_path: Path, then: str, now: str, adapter: str = "spark") -> list[str]:
    """What differs between two loads."""
    before = loaded(tmp_path / "then", then, adapter)
    after = loaded(tmp_path / "now", now, adapter)
    return [name for name in before if before[name] != after[name]]


def test_two_loads_tell_the_columns_of_a_seed_apart(tmp_path: Path) -> None:
    corrected = OLD.replace("1.50", "1.75")
    assert loaded_otherwise(tmp_path, OLD, corrected) == ["price"]
    assert loaded_otherwise(tmp_path, OLD, OLD.replace("\n", "\r\n")) == []
    assert len(loaded_otherwise(tmp_path, OLD, OLD + "c,3,Cup\n")) == 4


def test_a_load_takes_no_column_of_a_file_that_the_engine_guesses_at(tmp_path: Path) -> None:
    quoted = OLD.replace("Tea", '"Te""a"')
    assert loaded_otherwise(tmp_path, quoted, quoted.replace("1.50", "1.75")) == ["price"]
    assert len(loaded_otherwise(tmp_path, quoted, quoted.replace("1.50", "1.75"), "duckdb")) == 4
    uneven = OLD + "c\n"
    assert len(loaded_otherwise(tmp_path, uneven, uneven.replace("1.50", "1.75"))) == 4


def test_another_row_changes_everything(tmp_path: Path) -> None:
    head = side(tmp_path / "head", OLD + "c,3,Cup\n")
    assert len(names(side(tmp_path / "base", OLD), head)) == 4


def test_where_one_file_is_missing_the_whole_seed_moves(tmp_path: Path) -> None:
    head = side(tmp_path / "head", OLD.replace("1.50", "1.75"))
    assert len(names(side(None, OLD), head)) == 4


def test_a_file_with_another_checksum_is_not_that_sides_file(tmp_path: Path) -> None:
    base = side(tmp_path / "base", OLD, written=OLD.replace("Pot", "Mug"))
    head = side(tmp_path / "head", OLD.replace("1.50", "1.75"))
    assert len(names(base, head)) == 4


@pytest.mark.parametrize("listed", [True, False])
def test_an_equal_seed_is_equal_wherever_it_lies(tmp_path: Path, listed: bool) -> None:
    head = side(tmp_path / "head", OLD, listed=listed)
    assert names(side(tmp_path / "base", OLD, listed=listed), head) == []
    assert names(side(None, OLD, listed=listed), head) == []


def test_a_file_at_hand_on_one_side_serves_both_analyses(tmp_path: Path) -> None:
    base, head = side(None, OLD, listed=False), side(tmp_path, OLD, listed=False)
    at_hand = {"base_analysis": analyse(base), "head_analysis": analyse(head)}
    assert names(base, head, **at_hand) == []


def test_a_new_column_of_the_file_is_seen_before_the_catalog_has_it(tmp_path: Path) -> None:
    text = "sku,price,name,size\na,1.50,Tea,S\nb,2,Pot,L\n"
    head = side(tmp_path / "head", text)
    sized = check("on_size", "select size from s.prices", SEED)
    head = project(*head.nodes.values(), sized, catalog={SEED: ["sku", "price", "name"]})
    selection = picked(side(tmp_path / "base", OLD), head)
    assert [t.name for t in selection.tests] == ["on_all", "on_size"]
    assert selection.broken == []


def test_a_column_type_is_of_its_column(tmp_path: Path) -> None:
    base = side(tmp_path / "base", OLD, column_types={"price": "decimal(10,2)"})
    head = side(tmp_path / "head", OLD, column_types={"price": "double"})
    assert names(base, head) == ["on_price", "on_all"]
    assert len(names(side(None, OLD), side(None, OLD, delimiter=";"))) == 4
    assert names(side(None, OLD), side(None, OLD, tags=["x"], quote_columns=None)) == []


def test_a_seed_too_large_for_a_checksum_is_compared_by_its_files(tmp_path: Path) -> None:
    def large(root: Path, text: str) -> Project:
        built = side(root, text)
        built.nodes[SEED] = replace(
            built.nodes[SEED], checksum={"name": "path", "checksum": "seeds/prices.csv"}
        )
        return built

    base = large(tmp_path / "base", OLD)
    changed = picked(base, large(tmp_path / "head", OLD.replace("Tea", "Chai")))
    assert len(changed.tests) == 4
    assert [*map(str, changed.notes)] == [
        "seed prices is too large for dbt to compute a checksum: its files differ"
    ]
    assert [(c.kind, c.name, c.file) for c in changed.causes] == [
        ("seed", "prices", "seeds/prices.csv")
    ]
    same = picked(base, large(tmp_path / "other", OLD))
    assert (same.tests, same.models) == ([], [])


def test_a_large_seed_in_one_place_goes_by_when_it_was_written(tmp_path: Path) -> None:
    built = side(tmp_path, OLD)
    built.nodes[SEED] = replace(
        built.nodes[SEED], checksum={"name": "path", "checksum": "seeds/prices.csv"}
    )
    assert built.metadata.generated_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert len(names(built, built.having())) == 4
    assert names(built, built) == [], "of one project, a change is only supposed"
    old = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
    os.utime(tmp_path / "seeds" / "prices.csv", (old, old))
    assert len(names(built, built.having())) == 4, "nothing says that base was made on this machine"
    built.metadata.user_id = "me"
    assert names(built, built.having()) == []
    elsewhere = built.having(metadata=replace(built.metadata, user_id="you"))
    assert len(names(elsewhere, built)) == 4


def test_a_large_seed_whose_file_on_base_is_not_here_goes_by_git(tmp_path: Path) -> None:
    def large(root: Path) -> Project:
        built = side(None, OLD)
        built.nodes[SEED] = replace(
            built.nodes[SEED],
            root_path=str(root),
            checksum={"name": "path", "checksum": "seeds/prices.csv"},
        )
        return built

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=me", "-c", "user.email=me@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=here, check=True, capture_output=True)

    base, here, shallow = large(tmp_path / "gone"), tmp_path / "here", tmp_path / "shallow"
    side(here, OLD)
    assert len(names(base, large(here))) == 4, "outside of git"
    git("init", "-q")
    assert len(names(base, large(here))) == 4, "in no commit"
    git("add", "-A")
    git("commit", "-q", "-m", "as it is")
    answer = picked(base, large(here))
    assert (answer.tests, answer.models) == ([], [])
    never_edited = [
        "seed prices is too large for dbt to compute a checksum: git knows no other version of its "
        "file, so it counts as unchanged"
    ]
    assert [*map(str, answer.notes)] == never_edited
    checked_out_anew = picked(large(here), large(here))
    assert [*map(str, checked_out_anew.notes)] == never_edited, "in one place, after base was built"
    git("clone", "-q", "--depth", "1", here.as_uri(), str(shallow))
    assert len(names(base, large(shallow))) == 4, "a clone without history"
    side(here, OLD.replace("Tea", "Chai"))
    assert len(names(base, large(here))) == 4, "edited"
    assert len(names(large(here), large(here))) == 4, "edited, in one place"
    git("commit", "-q", "-a", "-m", "edited")
    assert len(names(base, large(here))) == 4, "edited in a commit"
    assert len(names(base, large(tmp_path / "elsewhere"))) == 4, "head's file is not here"


# --- what their files say of types, for the facts of rule 14 ---------------------------------------

KINDS = "kind,label\n{rows}"
KEYS = "select kind, label from s.kinds"


def with_kinds(root: Path, rows: str, **config: Any) -> Project:
    """A model that looks each of its rows up in a seed, whose key is tested to be unique."""
    (root / "seeds").mkdir(parents=True)
    text = KINDS.format(rows=rows)
    (root / "seeds" / "kinds.csv").write_text(text, encoding="utf-8")
    kinds, things = "seed.p.kinds", "source.p.raw.things"
    source = node(things, columns=["id", "kind"])
    source = replace(source, identifier="things", relation_name="`s`.`things`")
    sql = "select t.id, k.label from s.things as t left join s.kinds as k on lower(t.kind) = k.kind"
    grouped = "select {0}, count(*) as n from s.{1} where {0} is not null group by {0} having count(*) > 1"
    seed = node(
        kinds,
        config=config,
        root_path=str(root),
        original_file_path="seeds/kinds.csv",
        checksum={"name": "sha256", "checksum": hashlib.sha256(text.strip().encode()).hexdigest()},
    )
    made = project(
        source,
        seed,
        node("model.p.labelled", sql, things, kinds),
        check("unique_id", grouped.format("id", "labelled"), "model.p.labelled"),
        check("unique_kind", grouped.format("kind", "kinds"), kinds),
        types={
            kinds: {"kind": "varchar", "label": "varchar"},
            things: {"id": "int", "kind": "text"},
        },
    )
    return made.having(
        run_results=[
            RunResult(unique_id=u, status="pass", failures=0)
            for u in made.nodes
            if u.startswith("test")
        ]
    )


def proven(base: Project, head: Project) -> list[str]:
    """The names of the tests that are proven; all others run."""
    selection = select(base, head)
    assert len(selection.proven) + len(selection.tests) == 2
    return [test.unique_id.rpartition(".")[2] for test in selection.proven]


def test_a_column_with_a_word_in_it_stays_text(tmp_path: Path) -> None:
    base = with_kinds(tmp_path / "base", "tea,Tea\n1,Pot\n")
    head = with_kinds(tmp_path / "head", "tea,Tea\n1,Pot\ncup,Cup\n")
    assert proven(base, head) == ["unique_id", "unique_kind"]  # the latter by its file


@pytest.mark.parametrize("last", ["2", "1e5", "true", "2026-01-01", "NaN", "-inf", ""])
def test_a_column_of_which_no_value_is_a_word_may_come_to_be_anything(
    tmp_path: Path, last: str
) -> None:
    base = with_kinds(tmp_path / "base", "tea,Tea\n1,Pot\n")
    head = with_kinds(tmp_path / "head", f"1,Pot\n{last},Cup\n")
    assert "unique_id" not in proven(base, head)


def test_a_type_that_is_set_is_the_type(tmp_path: Path) -> None:
    types = {"column_types": {"kind": "varchar(9)"}}
    base = with_kinds(tmp_path / "base", "1,Tea\n", **types)
    head = with_kinds(tmp_path / "head", "1,Tea\n2,Pot\n", **types)
    assert proven(base, head) == ["unique_id"]
    numbers = {"column_types": {"kind": "double"}}
    base = with_kinds(tmp_path / "base of numbers", "tea,Tea\n", **numbers)
    head = with_kinds(tmp_path / "head of numbers", "tea,Tea\nb,Pot\n", **numbers)
    assert proven(base, head) == []


READERS = {
    "greatest": ("select max(price) as p, sum(price) as q from s.prices", False),
    "sorted": ("select * from s.prices order by sku", False),
    "counted": ("select name, count(*) as n from s.prices group by name", False),
    "met": ("select a.sku from s.prices a join s.prices b on a.sku = b.sku", False),
    "first": ("select * from s.prices limit 1", True),
    "listed": ("select array_agg(sku) as skus from s.prices", True),
    "numbered": ("select sku, row_number() over () as n from s.prices", True),
    "latest": ("select sku, row_number() over (order by name) as n from s.prices", True),
    "first_of_a_view": ("select * from (select sku from s.prices) limit 1", True),
}
REORDERED = "sku,price,name\nc,3,Tea\nb,2,Pot\na,1.50,Tea\n"
IN_ORDER = "sku,price,name\na,1.50,Tea\nb,2,Pot\nc,3,Tea\n"


def with_readers(root: Path, text: str) -> Project:
    tests = [check(f"on_{name}", sql, SEED) for name, (sql, _) in READERS.items()]
    return project(side(root, text).nodes[SEED], *tests, catalog={SEED: ["sku", "price", "name"]})


def test_rows_in_another_order_count_where_something_sees_it(tmp_path: Path) -> None:
    base, head = (
        with_readers(tmp_path / name, text)
        for name, text in (("base", IN_ORDER), ("head", REORDERED))
    )
    selection = picked(base, head)
    seen = {f"on_{name}" for name, (_, sees) in READERS.items() if sees}
    assert {test.name for test in selection.tests} == seen
    assert selection.models == [SEED]
    moved = names(base, with_readers(tmp_path / "moved", REORDERED.replace("3", "4")))
    assert set(moved) == {f"on_{name}" for name in READERS} - {"on_counted"}  # names stay in place


@pytest.mark.parametrize(("sql", "sees"), READERS.values(), ids=[*READERS])
def test_what_sees_the_order_of_rows_does_when_executed(
    tmp_path: Path, sql: str, sees: bool
) -> None:
    results = []
    for name, text in (("base", IN_ORDER), ("head", REORDERED)):
        file = tmp_path / f"{name}.csv"
        file.write_text(text)
        with duckdb.connect() as connection:
            connection.execute("create schema s")
            connection.execute(f"create table s.prices as from read_csv('{file}')")
            results.append(sorted(map(repr, connection.execute(sql).fetchall())))
    assert (results[0] != results[1]) == sees


GUESSED = {
    "nothing, and a text without letters": ("k,v,w\na,,1\n", 'k,v,w\na,"",1\n'),
    "a quote that is only one in a later row": (
        "k,v,w\n'a',b,1\nc,d,2\n",
        "k,v,w\n'a',b,1\nc,d''e,2\n",
    ),
    "a blank line": ("k\na\nb\n", "k\na\n\nb\n"),
}


@pytest.mark.parametrize(("old", "new"), GUESSED.values(), ids=[*GUESSED])
def test_a_file_counts_as_a_whole_where_its_loader_guesses_how_it_is_written(
    tmp_path: Path, old: str, new: str
) -> None:
    """dbt-duckdb has DuckDB copy the file, which looks at all of it."""
    for adapter in ("duckdb", "spark"):
        sides = []
        for name, text in (("base", old), ("head", new)):
            made = side(tmp_path / f"{adapter}{name}", text, listed=False)
            made.metadata.adapter_type = adapter
            sides.append(made)
        assert compare(*sides).changed[SEED].rows == (adapter == "duckdb")


@pytest.mark.parametrize(
    ("name", "plain"), [("Pot", True), ("Cook's pots, 7' wide", True), ("'t Pot", False)]
)
def test_a_plain_file_is_told_apart_by_columns_on_duckdb_too(
    tmp_path: Path, name: str, plain: bool
) -> None:
    text = OLD.replace("Pot", f'"{name}"' if "," in name else name)
    base, head = (
        side(tmp_path / "base", text),
        side(tmp_path / "head", text.replace("1.50", "1.75")),
    )
    for made in (base, head):
        made.metadata.adapter_type = "duckdb"
    assert compare(base, head).changed[SEED].rows != plain
    assert (names(base, head) == ["on_price", "on_all"]) == plain


@pytest.mark.parametrize("adapter", ["duckdb", "spark", "postgres", "snowflake"])
def test_quoted_names_count_where_they_are_other_names(tmp_path: Path, adapter: str) -> None:
    def quoting(name: str, text: str, **config: Any) -> Project:
        built = side(tmp_path / name, text, **config)
        built.metadata.adapter_type = adapter
        return built

    base, head = quoting("base", OLD), quoting("head", OLD, quote_columns=False)
    assert bool(names(base, head)) == (adapter == "snowflake")  # ID is not "id"
    text = OLD.replace("price", "Price")
    base, head = quoting("base", text), quoting("head", text, quote_columns=False)
    assert bool(names(base, head)) == (adapter in ("postgres", "snowflake"))
    assert picked(base, head).models == [SEED]  # a word may need its quotes


def test_a_delimiter_with_its_file_loads_the_same_table(tmp_path: Path) -> None:
    base = side(tmp_path / "base", OLD)
    other = OLD.replace(",", ";")
    assert names(base, side(tmp_path / "head", other, delimiter=";")) == []
    assert picked(base, side(tmp_path / "built", other, delimiter=";")).models == [SEED]
    changed = side(tmp_path / "changed", other.replace("Pot", "Mug"), delimiter=";")
    assert names(base, changed) == ["on_name", "on_all"]
    assert len(names(base, side(tmp_path / "alone", OLD, delimiter=";"))) == 4
    assert len(names(base, side(tmp_path / "file", other))) == 4


def test_a_column_renamed_with_its_readers_is_the_same_column(tmp_path: Path) -> None:
    def renamed(text: str, **config: Any) -> Project:
        head = side(tmp_path / "head", text.replace("price", "cost"), **config)
        node_of_test = head.nodes["test.p.on_price"]
        node_of_test = head.nodes["test.p.on_price"] = replace(
            node_of_test,
            compiled_code="select cost from s.prices",
            raw_code="select cost from s.prices",
        )
        head.catalog.clear()
        return head

    base = side(tmp_path / "base", OLD)
    assert names(base, renamed(OLD)) == []
    assert names(base, renamed(OLD.replace("1.50", "1.75"))) == ["on_price", "on_all"]
    typed = side(tmp_path / "base", OLD, column_types={"price": "text"})
    assert "on_price" in names(typed, renamed(OLD, column_types={"price": "text"}))


# --- headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_git", [True, False])
def test_a_header_that_is_renamed_is_seen_from_the_file(tmp_path: Path, in_git: bool) -> None:
    """Head's file lies where base's did; git may still have that."""

    def git(*args: str) -> None:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run([*command, *args], check=True, capture_output=True)

    def world(text: str, column: str) -> Project:
        built = side(tmp_path, text, listed=False)
        stg = node("model.p.stg", f"select sku, {column} as price from s.prices", SEED)
        top = node("model.p.top", "select price from s.stg", "model.p.stg")
        return project(built.nodes[SEED], stg, top)

    base = world(OLD, "price")
    then = impact(base, base.nodes[SEED], [Change("rename", "price", "cost")])
    if in_git:
        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "base")
    renamed = OLD.replace("price", "cost")
    forgotten = gate(base, world(renamed, "price"))
    assert forgotten.decision == "BLOCKED"
    (message,) = [f.reason.message for f in forgotten.findings if f.rule == "reader_broken"]
    now = " (renamed to cost)" if in_git else ""
    assert message == f"cannot find price: prices.price is gone{now}"
    assert {a.name: a.severity for a in forgotten.affected} == {
        "stg": "breaking",
        "top": "breaking",
    }
    with_it = gate(base, world(renamed, "cost"))
    assert with_it.decision == ("APPROVED" if in_git else "CAUTION")
    assert then.decision == forgotten.decision
    assert [(a.name, a.severity) for a in then.affected_assets] == [
        (a.name, a.severity) for a in forgotten.affected
    ]
