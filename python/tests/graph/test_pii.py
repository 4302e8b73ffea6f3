"""Personal data follows the value: what it reaches, what stops it, and how each is explained."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hand_made import node, project
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dbt_ripple.artifacts import Column, Node, Project
from dbt_ripple.flow.relation import Deps
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.column_edges import Edges
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, NodeAnalysis
from dbt_ripple.graph.pii import PersonalData, PiiColumn, pii_columns

RAW = "source.p.raw.people"
CATALOG = {RAW: ["id", "Email", "phone", "age"]}


def people(**kinds: Any) -> Node:
    """A source whose email is personal data; other columns by keyword, as ``meta.pii``."""
    source = node(RAW, columns=["id", "email", "phone", "age"])
    for name, kind in {"email": "email", **kinds}.items():
        source.columns[name] = replace(source.columns[name], meta={"pii": kind})
    return source


def model(name: str, sql: str, *parents: str, **meta: dict[str, Any]) -> Node:
    """A model with what is said of its columns."""
    made = node(f"model.p.{name}", sql, *(parents or (RAW,)))
    return replace(
        made,
        columns={
            column: Column(name=column, meta=meta_of_column)
            for column, meta_of_column in meta.items()
        },
    )


def personal_columns(*nodes: Node, catalog: dict[str, list[str]] | None = None) -> list[PiiColumn]:
    made: Project = project(*nodes, catalog=catalog or CATALOG)
    return pii_columns(made, analyse(made))


def below(*nodes: Node) -> list[str]:
    """``node.column`` of everything but the source."""
    return [
        f"{c.unique_id.split('.')[-1]}.{c.column}"
        for c in personal_columns(*nodes)
        if c.unique_id != RAW
    ]


def test_a_declared_column_and_what_inherits_it() -> None:
    stg = model("stg", "select id, email as mail, phone from s.people")
    dim = model("dim", "select lower(mail) as mail, id from s.stg", "model.p.stg")
    assert personal_columns(people(), stg, dim) == [
        PiiColumn(
            "model.p.dim",
            "mail",
            "email",
            "inherited",
            None,
            RAW,
            "Email",
            (f"{RAW}.Email", "model.p.stg.mail", "model.p.dim.mail"),
        ),
        PiiColumn(
            "model.p.stg",
            "mail",
            "email",
            "inherited",
            None,
            RAW,
            "Email",
            (f"{RAW}.Email", "model.p.stg.mail"),
        ),
        PiiColumn(RAW, "Email", "email", "declared", None, RAW, "Email", (f"{RAW}.Email",)),
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "sha2(email, 256)",
        "md5(email)",
        "xxhash64(email)",
        "hash(lower(email))",
        "mask(email)",
        "base64(aes_encrypt(email, 'k'))",
        "count(email)",
        "count(distinct email)",
        "approx_count_distinct(email)",
        "count_if(email = 'a')",
        "case when email = 'a' then id end",
        "if(email is null, 1, 2)",
        "count(*)",
        "max(id)",
    ],
)
def test_what_does_not_give_the_value_back_stops_it(expression: str) -> None:
    assert below(people(), model("m", f"select {expression} as x from s.people")) == []


@pytest.mark.parametrize(
    "expression",
    [
        "email",
        "upper(trim(email))",
        "coalesce(email, 'nobody')",
        "case when id = 1 then email end",
        "min(email)",
        "max(email)",
        "first(email)",
        "any_value(email)",
        "collect_list(email)",
        "collect_set(email)",
        "max_by(email, id)",
        "concat_ws(',', collect_list(email))",
        "concat(sha2(email, 256), email)",
        "struct(id, email)",
        "first_value(email) over (partition by id order by id)",
        "(select max(email) from s.people)",
    ],
)
def test_what_can_give_it_back_does_not(expression: str) -> None:
    assert below(people(), model("m", f"select {expression} as x from s.people")) == ["m.x"]


def test_a_hash_stays_one_further_down() -> None:
    stg = model("stg", "select sha2(email, 256) as mail_hash, email from s.people")
    dim = model("dim", "select upper(mail_hash) as x from s.stg", "model.p.stg")
    assert below(people(), stg, dim) == ["stg.email"]


def test_the_kind_is_that_of_the_nearest_declared_column() -> None:
    stg = model("stg", "select email, phone from s.people", email={"pii": "login"})
    dim = model("dim", "select email, phone from s.stg", "model.p.stg")
    inheritance = {
        (c.unique_id, c.column): (c.pii, c.origin, c.source_id)
        for c in personal_columns(people(phone=True), stg, dim)
    }
    assert inheritance["model.p.stg", "email"] == ("login", "declared", "model.p.stg")
    assert inheritance["model.p.dim", "email"] == ("login", "inherited", "model.p.stg")
    assert inheritance["model.p.dim", "phone"] == ("pii", "inherited", RAW)


def test_the_path_is_the_shortest() -> None:
    a = model("a", "select email from s.people")
    b = model("b", "select email from s.a", "model.p.a")
    c = model(
        "c", "select coalesce(b.email, p.email) as x from s.people as p join s.b", RAW, "model.p.b"
    )
    (last,) = (p for p in personal_columns(people(), a, b, c) if p.unique_id == "model.p.c")
    assert last.path == (f"{RAW}.Email", "model.p.c.x")


def test_declassified_with_a_reason_and_nothing_inherits_from_it() -> None:
    declared = {"pii": "none", "pii_reason": "the domain is no person"}
    stg = model("stg", "select split(email, '@')[1] as domain from s.people", domain=declared)
    dim = model("dim", "select domain from s.stg", "model.p.stg")
    (row, _) = personal_columns(people(), stg, dim)
    assert (row.unique_id, row.column, row.origin, row.reason, row.pii) == (
        "model.p.stg",
        "domain",
        "declassified",
        "the domain is no person",
        "email",
    )
    assert row.path == (f"{RAW}.Email", "model.p.stg.domain")


def test_without_a_reason_nothing_is_declassified() -> None:
    stg = model("stg", "select email from s.people", email={"pii": "none"})
    assert [c.origin for c in personal_columns(people(), stg)] == ["inherited", "declared"]


def test_none_where_nothing_arrives_is_no_news() -> None:
    declared = {"pii": False, "pii_reason": "it is a number"}
    assert below(people(), model("m", "select id from s.people", id=declared)) == []


def test_a_flagged_node_means_all_its_columns_unless_they_say_which() -> None:
    flagged = model("m", "select id, age from s.people", id={"pii": "none"})
    flagged = replace(flagged, meta={"pii": True})
    assert below(people(), flagged) == ["m.age"]
    flagged.columns["age"] = Column(name="age", tags=["pii"])
    flagged.columns["id"] = replace(flagged.columns["id"], meta={})
    assert below(people(), flagged) == ["m.age"]


@pytest.mark.parametrize("columns", [2, 300])
def test_an_opaque_node_may_hold_whatever_its_parents_hold(columns: int) -> None:
    names = [f"c{i}" for i in range(columns)]
    opaque = node(
        "model.p.ml", "def model(dbt, session): ...", RAW, columns=names, language="python"
    )
    source = people()
    source = replace(
        source, columns=source.columns | {f"f{i}": Column(name=f"f{i}") for i in range(columns)}
    )
    listed = {RAW: list(source.columns), "model.p.ml": names}
    inherited = [
        c for c in personal_columns(source, opaque, catalog=listed) if c.origin == "inherited"
    ]
    assert {c.column for c in inherited} == set(names)
    assert all(c.path == (f"{RAW}.email", f"model.p.ml.{c.column}") for c in inherited)


def test_an_exposure_holds_what_it_reads_or_may_read() -> None:
    stg = model("stg", "select id, email, phone from s.people")
    listed = node("exposure.p.known", None, "model.p.stg")
    listed = replace(listed, meta={"referenced_columns": ["stg.id", "phone"]})
    unknown = node("exposure.p.unknown", None, "model.p.stg")
    found_below = below(people(phone="phone"), stg, listed, unknown)
    assert found_below == [
        "known.phone",
        "unknown.email",
        "unknown.phone",
        "stg.email",
        "stg.phone",
    ]


def test_a_source_that_the_project_builds_is_that_node() -> None:
    built = model("people", "select id, email from s.elsewhere")
    reader = model("m", "select email from s.people", RAW)
    assert below(people(), built, reader) == ["m.email", "people.email"]
    assert [c.path[0] for c in personal_columns(people(), built, reader)] == [f"{RAW}.Email"] * 3


def test_nothing_declared_nothing_found() -> None:
    source = node(RAW, columns=["email"])
    assert personal_columns(source, model("m", "select email from s.people")) == []


# --- what masks -----------------------------------------------------------------------------------

MARKED = "case 'dbt_ripple.mask' when 'dbt_ripple.mask' then concat(left(email, 1), '***') end"


@pytest.mark.parametrize("adapter", ["spark", "databricks", "duckdb", "postgres", "bigquery"])
def test_what_the_mask_macro_writes_is_seen_to_mask(adapter: str) -> None:
    m = model("m", f"select {MARKED} as x from s.people")
    call = "select {{ dbt_ripple.mask('email', 'partial') }} as x from s.people"
    m = replace(m.calling(["macro.dbt_ripple.mask"]), raw_code=call)
    made = project(people(), m, catalog={RAW: ["id", "email"]}, adapter=adapter)
    assert [c.unique_id for c in pii_columns(made, analyse(made))] == [RAW]


@pytest.mark.parametrize(
    "expression",
    [
        "case when 'dbt_ripple.mask' = id then email end",
        "case 'dbt_ripple.masks' when 'dbt_ripple.mask' then email end",
        "case id when 'dbt_ripple.mask' then email end",
        "case when id is not null then email end",
        f"concat(email, {MARKED})",
        f"{MARKED} || email",
        "email /* dbt_ripple.mask */",
    ],
)
def test_nothing_else_is(expression: str) -> None:
    assert below(people(), model("m", f"select {expression} as x from s.people")) == ["m.x"]


@pytest.mark.parametrize(
    "expression",
    [
        "hide(email)",
        "analytics.hide(email)",
        "cat.analytics.HIDE(lower(email), 3)",
        "regexp_replace(email, '.', 'x')",
        "min(hide(email))",
    ],
)
def test_functions_that_the_project_says_mask(expression: str) -> None:
    of_package = node("model.dbt_ripple.ripple_pii_columns", "select 1 as x")
    of_package = replace(of_package, meta={"masking_functions": ["Hide", "x.y.regexp_replace"]})
    m = model("m", f"select {expression} as x from s.people")
    assert below(people(), m) == ["m.x"]
    assert below(people(), m, of_package) == []


def test_a_dbt_function_that_is_said_to_mask() -> None:
    m = model("m", "select udfs.hide(email) as x from s.people", RAW, "function.p.hide")
    hide = node("function.p.hide")
    assert below(people(), m, hide) == ["m.x"]
    hide = replace(hide, meta={"masking": True})
    assert below(people(), m, hide) == []


def test_what_masks_is_part_of_the_key_of_the_cache(tmp_path: Path) -> None:
    m = model("m", "select hide(email) as x from s.people")
    of_package = node("model.dbt_ripple.ripple_pii_columns", "select 1 as x")
    for masking, inherited in (([], 1), (["hide"], 0), ([], 1)):
        of_package = replace(of_package, meta={"masking_functions": masking})
        made = project(people(), m, of_package, catalog=CATALOG)
        with Cache(tmp_path) as cache:
            assert len(pii_columns(made, analyse(made, cache=cache))) == 1 + inherited


# --- any project ----------------------------------------------------------------------------------

KINDS_OF_EDGES = [
    ("DIRECT", "IDENTITY", False),
    ("DIRECT", "AGGREGATION", False),
    ("DIRECT", "TRANSFORMATION", True),
    ("INDIRECT", "JOIN", False),
]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from(KINDS_OF_EDGES)),
        max_size=30,
    ),
    st.lists(st.sampled_from(["declared", "declassified", "silent"]), min_size=8, max_size=8),
)
def test_it_is_what_can_be_reached_and_each_path_is_one(
    drawn: list[tuple[int, int, tuple[str, str, bool]]], origin_of: list[str]
) -> None:
    metas = {
        "declared": {"pii": "x"},
        "declassified": {"pii": "none", "pii_reason": "r"},
        "silent": {},
    }
    nodes = [model(f"m{i}", "select 1 as c", c=metas[origin_of[i]]) for i in range(8)]
    edges = [ColumnEdge(f"model.p.m{a}", "c", f"model.p.m{b}", "c", *kind) for a, b, kind in drawn]
    seen = {n.unique_id: NodeAnalysis(n.unique_id, "analysed", None, ["c"]) for n in nodes}
    rows = pii_columns(project(*nodes), Analysis(seen, edges, [], {}))
    steps = {(a, b) for a, b, (type_, _, masking) in drawn if type_ == "DIRECT" and not masking}
    holds = {i for i in range(8) if origin_of[i] == "declared"}
    while more := {b for a, b in steps if a in holds and origin_of[b] != "declassified"} - holds:
        holds |= more
    reached = {b for a, b in steps if a in holds and origin_of[b] == "declassified"}
    assert {int(row.unique_id[-1]) for row in rows if row.origin != "declassified"} == holds
    assert {int(row.unique_id[-1]) for row in rows if row.origin == "declassified"} == reached
    for row in rows:
        path = [int(vertex[-3]) for vertex in row.path]
        assert origin_of[path[0]] == "declared" and f"model.p.m{path[0]}" == row.source_id
        assert row.unique_id == f"model.p.m{path[-1]}"
        assert set(pairwise(path)) <= steps
        assert not any(origin_of[i] != "silent" for i in path[1:-1])


# --- two states of a project ----------------------------------------------------------------------

MASKS = {"IDENTITY": 1, "AGGREGATION": 4, "TRANSFORMATION masked": 16, "JOIN": 64}

DEPS = st.dictionaries(
    st.tuples(st.integers(0, 5), st.sampled_from("ab")), st.sampled_from(list(MASKS)), max_size=3
)
STATE_OF_NODE = st.tuples(
    DEPS,
    DEPS,
    st.sampled_from(["declared", "declassified", "silent", "silent"]),
    st.sampled_from(["analysed", "analysed", "analysed", "opaque"]),
    st.sampled_from(["silent", "flagged"]),
    st.sampled_from([[], [], ["c"]]),
)


def state(drawn: list[Any], source_of: int | None) -> tuple[Project, Analysis]:
    """A project of six models with the columns a and b, and perhaps a source that one of them builds."""
    metas: dict[str, dict[str, str]] = {
        "declared": {"pii": "x"},
        "declassified": {"pii": "none", "pii_reason": "r"},
        "silent": {},
    }
    nodes, seen, catalog = [], {}, {}
    deps: dict[str, tuple[list[str], list[Deps], Deps]] = {}
    for i, (of_a, of_b, origin, status, flagged, listed) in enumerate(drawn):
        made = model(f"m{i}", "select 1 as a, 2 as b", a=metas[origin])
        unique_id = made.unique_id
        meta = {"pii": True} if flagged == "flagged" else {}
        nodes.append(replace(made, meta=meta, relation_name=f"s.m{i}"))
        seen[unique_id] = NodeAnalysis(unique_id, status, None, ["a", "b"], ["1", "2"])
        own: list[Deps] = [
            {(f"model.p.m{parent}", column): MASKS[kind] for (parent, column), kind in of.items()}
            for of in (of_a, of_b)
        ]
        rows: Deps = {key: 1 for of in own for key in of}
        deps[unique_id] = ["a", "b"], own, rows
        catalog[unique_id] = listed
    if source_of is not None:
        made = node("source.p.s.t", columns=["a"])
        made.columns["a"] = replace(made.columns["a"], meta={"pii": "x"})
        nodes.append(replace(made, relation_name=f"s.m{source_of}"))
        seen["source.p.s.t"] = NodeAnalysis("source.p.s.t", "leaf", None, ["a"], ["1"])
        deps["source.p.s.t"] = ["a"], [{}], {}
    edges = Edges(deps, lambda _, how: how, [])
    return project(*nodes, catalog=catalog), Analysis(seen, edges, [], {})


@settings(deadline=None, max_examples=500)
@given(
    st.lists(STATE_OF_NODE, min_size=6, max_size=6),
    st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 5), STATE_OF_NODE), max_size=4),
    st.sampled_from([(None, None), (0, 0), (0, 1), (None, 0), (0, None)]),
    st.sets(st.integers(0, 5), min_size=1, max_size=2),
)
def test_what_is_certain_on_the_other_side_is_there(
    drawn: list[Any],
    edited: dict[int, tuple[int, Any]],
    built: tuple[int | None, int | None],
    into: set[int],
) -> None:
    """Of two states; and what is asked of some nodes is what is said of them among all."""
    edits = [list(made) for made in drawn]
    for i, (aspect, otherwise) in edited.items():
        edits[i][aspect] = otherwise[aspect]
    head, seen = state(edits, built[0])
    base, before = state(drawn, built[1])

    def keys(columns: list[PiiColumn]) -> set[tuple[str, str, str]]:
        return {(pii.unique_id, pii.column, pii.origin) for pii in columns}

    data, on_base = PersonalData(head, seen), PersonalData(base, before)
    certain = keys(data.certain_on(base, before))
    assert certain <= keys(data.columns) & keys(on_base.columns)
    if edits == [list(made) for made in drawn] and built[0] == built[1]:
        assert certain == keys(data.columns)
    asked = {f"model.p.m{i}" for i in into}
    some = keys(PersonalData(base, before, asked).columns)
    assert {k for k in some if k[0] in asked} == {k for k in keys(on_base.columns) if k[0] in asked}


@pytest.mark.parametrize(
    ("expression", "masks"),
    [
        ("tools.md5(email)", False),
        ("tools.sha2(email, 256)", False),
        ("a.tools.hash(lower(email))", False),
        ("builtin.md5(email)", True),
        ("md5(email)", True),
        ("email.md5()", True),
        ("tools.hide(email)", True),
        ("tools.sha512(email)", True),
    ],
)
def test_a_function_of_a_schema_masks_only_where_it_is_listed(expression: str, masks: bool) -> None:
    listed = node(
        "model.dbt_ripple.ripple_pii_columns",
        "select 1 as a",
        meta={"masking_functions": ["tools.hide", "tools.sha512"]},
    )
    made = project(
        *(people(), listed, model("m", f"select {expression} as x from s.people")),
        catalog={RAW: ["id", "email"]},
        adapter="duckdb",
    )
    found = {c.unique_id for c in pii_columns(made, analyse(made))}
    assert ("model.p.m" not in found) == masks
