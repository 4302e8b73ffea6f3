"""What dbt and its macros do with a node's properties: what counts, for what, and what does not.

Every case is two sides that differ in one property. `TESTS` selects the test below, `BUILD` only
builds the model, `NOTHING` does neither.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest
from hand_made import LISTED, RAW, check, macro, node, orders, picked, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Column, Macro, Node, Project, Ref
from dbt_ripple.graph import config_fingerprints
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.node_properties import property_names, read_of
from dbt_ripple.jinja.reads import Reads

NOTHING: tuple[list[str], list[str]] = ([], [])
BUILD = ([], ["model.p.a"])
TESTS = (["t"], ["model.p.a"])

DBT = [
    macro("macro.dbt.create_table_as", "...", "macro.dbt.default__create_table_as"),
    macro("macro.dbt.default__create_table_as", "create table"),
    macro("macro.dbt.persist_docs", "{% macro persist_docs(relation, model) %}"),
    macro(
        "macro.dbt.materialization_table_default",
        "...",
        "macro.dbt.create_table_as",
        "macro.dbt.persist_docs",
    ),
    macro("macro.dbt.materialization_view_default", "..."),
    macro("macro.dbt.materialization_incremental_default", "...", "macro.dbt.create_table_as"),
    macro("macro.dbt.materialization_test_default", "...", "macro.dbt.get_test_sql"),
    macro("macro.dbt.get_test_sql", "select count(*)"),
    macro("macro.dbt.drop_schema", "drop schema"),
    macro("macro.dbt.get_incremental_merge_sql", "...", "macro.dbt.get_merge_sql"),
    macro("macro.dbt.get_merge_sql", "merge into"),
]


def side(
    config: dict[str, Any] | None = None,
    *macros: Macro,
    adapter: str = "duckdb",
    columns: dict[str, Column] | None = None,
    hook: str = "",
    on_run: str = "",
    sql: str | None = "select id, amount from s.orders",
    **more: Any,
) -> Project:
    """orders -> a -> below, with a test on a."""
    a = node("model.p.a", sql, RAW, config=dict(config or {}), **more)
    if hook:
        a.config["post-hook"] = [{"sql": hook}]
    a = replace(a, columns=columns or {})
    nodes = [orders(), a, check("t", "select id from s.a where id is null", "model.p.a")]
    if on_run:
        nodes.append(node("operation.p.p-on-run-end-0", None, raw=on_run))
    return project(*nodes, catalog=LISTED, macros=[*DBT, *macros], adapter=adapter)


def what_changed(base: Project, head: Project) -> tuple[list[str], list[str]]:
    chosen = picked(base, head)
    return [t.name for t in chosen.tests], chosen.models


VIEW = {"materialized": "view"}
INCREMENTAL = {"materialized": "incremental"}
EPHEMERAL = {"materialized": "ephemeral"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # descriptive
        ({}, {"meta": {"a": 1}, "tags": ["x"], "docs": {"show": False}}, NOTHING),
        ({}, {"access": "public", "group": "g", "deprecation_date": "2030-01-01"}, NOTHING),
        ({}, {"freshness": {"build_after": {"count": 1}}, "event_time": "at"}, NOTHING),
        # stored otherwise
        ({}, {"indexes": [{"columns": ["id"], "unique": True}]}, BUILD),
        ({}, {"grants": {"select": ["me"]}}, BUILD),
        ({}, {"persist_docs": {"relation": True}}, BUILD),
        ({}, {"cluster_by": ["id"]}, BUILD),
        ({}, {"location_root": "/elsewhere"}, BUILD),
        ({}, {"partition_by": ["id"]}, BUILD),
        ({}, {"alias": "other"}, BUILD),
        ({}, {"schema": "other"}, BUILD),
        ({}, {"database": "other"}, BUILD),
        ({}, {"quoting": {"identifier": False}}, BUILD),
        ({"file_format": "parquet"}, {"file_format": "orc"}, BUILD),
        # what may change data
        ({"file_format": "parquet"}, {"file_format": "csv"}, TESTS),
        ({}, {"tblproperties": {"delta.appendOnly": "true"}}, TESTS),
        ({}, {"require_partition_filter": True}, TESTS),
        ({}, {"row_access_policy": "p on (id)"}, TESTS),
        ({}, {"what_is_this": 1}, TESTS),
        ({"what_is_this": 1}, {"what_is_this": 2}, TESTS),
        # of another materialization
        ({}, {"unique_key": "id", "on_schema_change": "fail"}, NOTHING),
        ({}, {"incremental_strategy": "merge", "lookback": 3}, NOTHING),
        (VIEW, {**VIEW, "full_refresh": False}, NOTHING),
        (INCREMENTAL, {**INCREMENTAL, "on_schema_change": "fail"}, TESTS),
        (INCREMENTAL, {**INCREMENTAL, "full_refresh": False}, TESTS),
        (INCREMENTAL, {**INCREMENTAL, "alias": "other"}, TESTS),  # its rows so far stay behind
        (INCREMENTAL, {**INCREMENTAL, "lookback": 3}, NOTHING),
        ({}, {"packages": ["numpy"], "submission_method": "x"}, NOTHING),
        # the materialization itself
        ({}, VIEW, BUILD),
        (VIEW, {}, BUILD),
        ({}, INCREMENTAL, TESTS),
        # nothing, said in two ways
        ({}, {"grants": {}, "indexes": None, "meta": {}, "post-hook": []}, NOTHING),
    ],
)
def test_config(
    before: dict[str, Any], after: dict[str, Any], expected: tuple[list[str], list[str]]
) -> None:
    assert what_changed(side(before), side(after)) == expected
    assert what_changed(side(after), side(before)) == expected
    assert what_changed(side(after), side(after)) == NOTHING


def test_a_partition_changes_a_column_where_the_engine_puts_it_last() -> None:
    assert (
        what_changed(side(adapter="spark"), side({"partition_by": ["id"]}, adapter="spark"))
        == TESTS
    )


def test_an_ephemeral_model_is_only_its_text() -> None:
    base = side({**EPHEMERAL, "what_is_this": 1, "post-hook": [{"sql": "delete from {{ this }}"}]})
    assert what_changed(base, side(EPHEMERAL)) == NOTHING


def test_a_hook_is_no_hook_of_an_ephemeral_model() -> None:
    hook = "delete from {{ this }} where id = 3"
    base, head = side(hook=hook), side(EPHEMERAL, hook=hook)
    assert what_changed(base, head)[0] == ["t"]


# --- columns, constraints, contracts ---------------------------------------------------------------


def of(**properties: Any) -> dict[str, Column]:
    return {"id": Column(name="id", **properties), "amount": Column(name="amount")}


CONTRACT = {"contract": {"enforced": True}}
NOT_NULL = {"type": "not_null"}


@pytest.mark.parametrize(
    ("config", "before", "after", "expected"),
    [
        ({}, of(), of(description="x", meta={"a": 1}, tags=["y"]), NOTHING),
        ({}, of(), of(data_type="int"), NOTHING),
        ({}, of(), of(constraints=[NOT_NULL]), BUILD),
        (VIEW, of(), of(constraints=[NOT_NULL]), BUILD),
        (CONTRACT, of(), of(constraints=[NOT_NULL]), BUILD),
        (CONTRACT, of(constraints=[NOT_NULL]), of(constraints=[{**NOT_NULL, "name": "x"}]), BUILD),
        (
            CONTRACT,
            of(constraints=[NOT_NULL]),
            of(constraints=[{**NOT_NULL, "expression": None, "warn_unsupported": True}]),
            NOTHING,
        ),
        (
            CONTRACT,
            of(constraints=[{"type": "check", "expression": "id > 0"}]),
            of(constraints=[{"type": "check", "expression": "id > 1"}]),
            BUILD,
        ),
        (CONTRACT, of(), of(constraints=[{"type": "custom", "expression": "default 3"}]), TESTS),
        (
            CONTRACT,
            of(),
            of(constraints=[{"type": "foreign_key", "expression": "x (id) on delete cascade"}]),
            TESTS,
        ),
        (CONTRACT, of(data_type="int"), of(data_type="bigint"), TESTS),
        (CONTRACT, of(data_type="int"), of(data_type="INT"), NOTHING),
        (CONTRACT, of(data_type="enum('a')"), of(data_type="enum('A')"), TESTS),
        ({"persist_docs": {"columns": True}}, of(), of(description="x"), BUILD),
        ({"persist_docs": {"relation": True}}, of(), of(description="x"), NOTHING),
        ({}, of(), of(more={"column_mask": "f"}), TESTS),
        ({}, of(), of(config={"databricks_mask": "f"}), TESTS),
        ({}, of(), of(config={"meta": {"a": 1}, "tags": ["x"]}), NOTHING),
    ],
)
def test_columns(
    config: dict[str, Any],
    before: dict[str, Column],
    after: dict[str, Column],
    expected: tuple[list[str], list[str]],
) -> None:
    assert what_changed(side(config, columns=before), side(config, columns=after)) == expected


def test_enforcing_a_contract_may_stop_the_build() -> None:
    assert what_changed(side(columns=of()), side(CONTRACT, columns=of())) == BUILD
    unaliased = {"contract": {"enforced": True, "alias_types": False}}
    assert what_changed(side(CONTRACT, columns=of()), side(unaliased, columns=of())) == BUILD


def test_a_constraint_of_the_whole_model() -> None:
    key = [{"type": "primary_key", "columns": ["id"]}]
    assert what_changed(side(CONTRACT), side(CONTRACT, constraints=key)) == BUILD
    assert what_changed(side(EPHEMERAL), side(EPHEMERAL, constraints=key)) == NOTHING


def test_a_description_is_written_down_where_the_project_says_so() -> None:
    persisted = {"persist_docs": {"relation": True}}
    assert what_changed(side(persisted), side(persisted, description="x")) == BUILD
    assert what_changed(side(), side(description="x")) == NOTHING


# --- where it is, on another target ----------------------------------------------------------------


def test_a_place_that_only_the_target_decides_is_the_same_place() -> None:
    alias = "{{ 'x_' ~ target.name }}"

    def on(target: str, unrendered: str) -> Project:
        return side({"schema": f"x_{target}"}, unrendered={"schema": unrendered})

    assert what_changed(on("prod", alias), on("ci", alias)) == NOTHING
    assert what_changed(on("prod", alias), on("ci", alias.replace("x_", "y_"))) == BUILD
    assert what_changed(on("prod", "x_prod"), on("ci", "x_ci")) == BUILD
    in_file = "{{ config(schema='x_' ~ target.name) }} select 1"
    base, head = (
        side({"schema": f"x_{t}"}, raw=in_file, unrendered={"schema": f"x_{t}"})
        for t in ("prod", "ci")
    )
    assert what_changed(base, head) == NOTHING


def test_a_macro_that_names_relations_changes_them_all() -> None:
    def with_macro(text: str) -> Project:
        return side({}, macro("macro.p.generate_alias_name", text))

    assert what_changed(with_macro("one"), with_macro("two")) == BUILD


# --- what reads a property -------------------------------------------------------------------------

META = {"meta": {"limit": 3, "owner": "x"}}
OTHER_LIMIT = {"meta": {"limit": 4, "owner": "x"}}
OTHER_OWNER = {"meta": {"limit": 3, "owner": "y"}}
READ_LIMIT = "delete from {{ this }} where id > {{ config.get('meta')['limit'] }}"


@pytest.mark.parametrize(
    ("hook", "after", "expected"),
    [
        (READ_LIMIT, OTHER_LIMIT, TESTS),
        ("... {{ model.meta.limit }}", OTHER_LIMIT, TESTS),
        ("... {{ model.config.meta.get('limit', 0) }}", OTHER_LIMIT, TESTS),
        ("... {{ config.meta_get('limit') }}", OTHER_LIMIT, TESTS),
        ("... {{ config.get('limit') }}", OTHER_LIMIT, TESTS),  # which dbt looks up in meta, too
        ("... {% set m = model.meta %}{{ m.limit }}", OTHER_LIMIT, TESTS),
        ("... {% for k in model.meta.items() %}{{ k }}{% endfor %}", OTHER_LIMIT, TESTS),
        ("... {{ config.get(which) }}", OTHER_LIMIT, TESTS),
        ("... {{ model | tojson }}", OTHER_LIMIT, TESTS),
        ("... {{ builtins.config.get('meta').limit }}", OTHER_LIMIT, TESTS),
        ("... {{ (model).meta }} {{ f(model=model) }}", OTHER_LIMIT, TESTS),
        ("... {{ config.get('me' ~ 'ta') }}", OTHER_LIMIT, TESTS),
        ("... {{ context['model'].meta }}", OTHER_LIMIT, TESTS),
        ("... {{ graph.nodes.values() | map(attribute='meta') }}", OTHER_LIMIT, TESTS),
        (READ_LIMIT, OTHER_OWNER, NOTHING),
        ("... {{ model.meta.limit }}", OTHER_OWNER, NOTHING),
        ("... {% set m = model.meta %}{{ m.limit }}", OTHER_OWNER, TESTS),
        ("... {{ model.name }} {{ config.get('alias') }}", OTHER_LIMIT, NOTHING),
        ("... {{ this }} {{ 'meta' }} model.meta", OTHER_LIMIT, NOTHING),
    ],
)
def test_what_a_hook_reads(
    hook: str, after: dict[str, Any], expected: tuple[list[str], list[str]]
) -> None:
    assert what_changed(side(META, hook=hook), side(after, hook=hook)) == expected


@pytest.mark.parametrize(
    ("text", "after", "counts"),
    [
        ("{{ model.columns.values() }}", {"columns": of(more={"x": 1})}, True),
        ("{{ model.columns['id'].meta }}", {"columns": of(meta={"x": 1})}, True),
        ("{{ model.description }}", {"description": "y"}, True),
        ("{{ model['tags'] }}", {"config": {"tags": ["y"]}, "tags": ["y"]}, True),
        ("{{ model.path }}", {"path": "elsewhere/a.sql"}, True),
        ("{{ model.original_file_path }}", {"original_file_path": "elsewhere/a.sql"}, True),
        ("{{ model.access }}", {"access": "public"}, True),
        ("{{ config.get('materialized') }}", {"config": VIEW}, True),
        ("{{ model.description }}", {"columns": of(description="y")}, False),
        ("{{ model.columns }}", {"description": "y"}, False),
    ],
)
def test_any_property_may_be_read(text: str, after: dict[str, Any], counts: bool) -> None:
    hook = f"delete from {{{{ this }}}} where x = '{text}'"
    config = after.pop("config", None)
    tests, _ = what_changed(side(hook=hook), side(config, hook=hook, **after))
    assert tests == (["t"] if counts else [])


@pytest.mark.parametrize(
    ("raw", "added", "counts"),
    [
        ("select * from {{ ref('raw') }}", "macro.p.ref", True),
        ("select * from {{ context['r' ~ 'ef']('raw') }}", "macro.p.ref", True),
        ("select * from raw {{ 'where }}", "macro.p.ref", True),  # which cannot be read
        ("select * from {{ model }}", "macro.p.get_where_subquery", True),
        # What dbt calls itself to build it is noted as it builds, and not as it compiles.
        ("select * from {{ ref('raw') }}", "macro.dbt.statement", False),
        ("select * from {{ ref('raw') }}", "macro.p.materialization_table_default", False),
    ],
)
def test_a_hook_may_read_which_macros_its_node_calls(raw: str, added: str, counts: bool) -> None:
    hook = "insert into {{ this }} select {{ model.depends_on.macros | length }}, 1"
    base, head = side(hook=hook), side(hook=hook)
    for project_of_side in (base, head):
        of_side = project_of_side.nodes["model.p.a"]
        project_of_side.nodes["model.p.a"] = replace(of_side, raw_code=raw)
    head.nodes["model.p.a"].depends_on.macros.append(added)
    assert what_changed(base, head)[0] == (["t"] if counts else [])


def test_what_a_macro_of_a_hook_reads() -> None:
    tidy = macro("macro.p.tidy", "{% macro tidy() %}delete {{ model.meta.limit }}{% endmacro %}")
    whole = macro("macro.p.tidy", "{% macro tidy(m) %}delete {{ m }}{% endmacro %}")
    assert what_changed(
        side(META, tidy, hook="{{ tidy() }}"), side(OTHER_LIMIT, tidy, hook="{{ tidy() }}")
    )[0] == ["t"]
    assert (
        what_changed(
            side(META, tidy, hook="{{ tidy() }}"), side(OTHER_OWNER, tidy, hook="{{ tidy() }}")
        )[0]
        == []
    )
    sides = [side(m, whole, hook="{{ tidy(model) }}") for m in (META, OTHER_OWNER)]
    assert what_changed(*sides)[0] == ["t"]


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        (
            "create_table_as",
            "{% macro create_table_as(temporary, relation, sql) %}...{% endmacro %}",
            False,
        ),
        ("create_table_as", "... {{ config.get('meta').limit }}", True),
        ("duckdb__create_table_as", "... {{ model.meta }}", True),
        ("persist_docs", "{% macro persist_docs(relation, m) %} {{ m.meta }}{% endmacro %}", True),
        (
            "persist_docs",
            "{% macro persist_docs(relation, m) %} {{ m | tojson }}{% endmacro %}",
            True,
        ),
        (
            "persist_docs",
            "{% macro persist_docs(relation, m) %} {{ m.description }}{% endmacro %}",
            False,
        ),
        ("materialization_table_duckdb", "{% do persist_docs(target_relation, model) %}", False),
        ("materialization_table_duckdb", "{% do describe(target_relation, model) %}", True),
        ("materialization_table_duckdb", "{{ config.get('alias') }}", False),
        ("drop_schema", "... {{ model.meta.limit }}", True),  # which adapters call by its name
        ("something_else", "... {{ model.meta.limit }}", False),
    ],
)
def test_what_a_macro_in_place_of_dbts_own_reads(name: str, text: str, counts: bool) -> None:
    ours = macro(f"macro.p.{name}", text)
    assert what_changed(side(META, ours), side(OTHER_LIMIT, ours)) == (TESTS if counts else NOTHING)


@pytest.mark.parametrize("name", ["get_merge_sql", "duckdb__get_merge_sql"])
def test_a_macro_of_a_strategy_counts_where_rows_are_kept(name: str) -> None:
    """dbt puts the name of a strategy's macro together: no macro of its calls it by name."""
    one, two = (macro(f"macro.p.{name}", text) for text in ("merge 1", "merge 2"))
    assert what_changed(side(INCREMENTAL, one), side(INCREMENTAL, two)) == TESTS
    assert what_changed(side({}, one), side({}, two)) == NOTHING


def test_what_a_materialization_of_ones_own_reads() -> None:
    def with_meta(text: str, **config: Any) -> Project:
        own = macro("macro.p.materialization_own_default", text)
        return side({"materialized": "own", **config}, own)

    reads = "{% set x = config.get('meta') %}"
    assert what_changed(with_meta(reads, **META), with_meta(reads, **OTHER_LIMIT)) == TESTS
    assert what_changed(with_meta("...", **META), with_meta("...", **OTHER_LIMIT)) == NOTHING
    assert what_changed(with_meta("..."), with_meta("...", what_is_this=1)) == TESTS


def test_what_the_branch_that_was_not_compiled_reads() -> None:
    raw = "select id from x {% if is_incremental() %} where id > {{ READ }} {% endif %}"
    for read, after, counts in (
        ("config.get('meta').limit", OTHER_LIMIT, True),
        ("config.get('meta').limit", OTHER_OWNER, False),
        ("3", OTHER_LIMIT, False),
    ):
        base, head = (
            side({**INCREMENTAL, **m}, raw=raw.replace("READ", read)) for m in (META, after)
        )
        assert what_changed(base, head) == (TESTS if counts else NOTHING)
    shown = "select id, amount, {{ config.get('meta').limit }} from x"
    assert what_changed(side(META, raw=shown), side(OTHER_LIMIT, raw=shown)) == NOTHING


def test_what_a_project_hook_reads_of_all_nodes() -> None:
    walks = "{% for n in graph.nodes.values() %} drop {{ n.meta.limit }} {% endfor %}"
    base, head = (side(m, on_run=walks) for m in (META, OTHER_LIMIT))
    assert what_changed(base, head) == TESTS
    base, head = (side(description=d, on_run=walks) for d in ("x", "y"))
    assert what_changed(base, head) == NOTHING
    dumps = "insert into s.a values ({{ graph.nodes | tojson }})"
    base, head = (side(description=d, on_run=dumps) for d in ("x", "y"))
    assert what_changed(base, head) == TESTS
    base, head = (side(description=d, on_run=dumps.replace("s.a", "log")) for d in ("x", "y"))
    assert what_changed(base, head) == NOTHING


def test_hooks_that_differ_by_words_read_all_nodes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package may load each of a hundred seeds by a hook of its own, whose macros walk over ``graph``."""
    nodes = []
    for i in range(12):
        hook = f"{{{{ inserts(this, kind=var('w{i}')) }}}}"
        config = {"post-hook": [{"sql": hook}]}
        nodes.append(node(f"model.p.m{i}", "select 1 as id", config=config))
    of = project(*nodes, macros=[*DBT, INSERTS, ROWS_OF, LINE])
    read: list[tuple[str, Reads]] = []

    def reading(one: Node, reads: Reads) -> list[Any]:
        read.append((one.unique_id, reads))
        return read_of(one, reads)

    monkeypatch.setattr(config_fingerprints, "read_of", reading)
    context = ConfigFingerprints(of, Macros(of))
    assert all(context.of(one) for one in nodes)
    # Each property of each node once for all of them.
    assert len(nodes) <= len(read) == len(set(read))


def test_what_no_node_has_is_not_read() -> None:
    one = node("model.p.m", "select 1 as id", meta={"limit": 1}, config={"tags": ["t"]})
    words = frozenset({"meta", "for", "tags", "alias", "refs", "nobody"})
    reads = Reads(names=words, parts=frozenset({("meta", "limit"), ("nobody", "limit")}))
    limited = reads.limited_to(property_names([one]))
    assert limited.names == words - {"for", "nobody"} and limited.parts == {("meta", "limit")}
    assert read_of(one, limited) == read_of(one, reads)
    every = frozenset({*words, *property_names([]), *one.config})
    assert read_of(one, Reads(names=every)) == read_of(one, Reads(names=every - {"for", "nobody"}))


INSERTS = macro(
    "macro.p.inserts",
    "{% macro inserts(into, kind='nodes', deep=False) %}{% set q %}insert into {{ into }} values "
    "({{ rows(kind, deep) }}){% endset %}{% do run_query(q) %}{% endmacro %}",
    "macro.p.rows",
)
ROWS_OF = macro(
    "macro.p.rows",
    "{% macro rows(what, deep) %}{% if deep %}{{ graph.nodes | tojson }}"
    "{% elif what == 'nodes' %}{% for n in graph.nodes.values() %}{{ line(n) }}{% endfor %}"
    "{% elif what == 'sources' %}{% for n in graph.sources.values() %}{{ n.name }}{% endfor %}"
    "{% else %}{% for n in graph.exposures.values() %}{{ n.name }}{% endfor %}{% endif %}{% endmacro %}",
    "macro.p.line",
)
LINE = macro("macro.p.line", "{% macro line(it) %}{{ it.meta.limit }}{% endmacro %}")


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        ("this", True),
        ("this, kind='nodes'", True),
        ("this, 'exposures'", False),
        ('this, kind="sources"', False),
        ("this, 'exposures', true", True),
        ("this, kind='exposures', deep=var('deep')", True),
        ("this, kind=var('kind')", True),
    ],
)
def test_a_hook_reads_in_the_branches_that_its_arguments_take(arguments: str, counts: bool) -> None:
    def with_limit(limit: int) -> Project:
        hook = f"{{{{ inserts({arguments}) }}}}"
        made = side({}, INSERTS, ROWS_OF, LINE, hook=hook)
        made.nodes["model.p.other"] = node("model.p.other", "select 1 as id", meta={"limit": limit})
        return project(*made.nodes.values(), catalog=LISTED, macros=list(made.macros.values()))

    assert what_changed(with_limit(1), with_limit(2))[0] == (TESTS[0] if counts else [])


@pytest.mark.parametrize(
    ("arguments", "edited", "counts"),
    [
        ("this", LINE, True),
        ("this, 'exposures'", LINE, False),
        ("this, 'exposures', true", LINE, False),
        ("this, kind=var('kind')", LINE, True),
        ("this, kind='sources'", ROWS_OF, False),  # a branch of it that is not taken
        ("this, kind='nodes'", ROWS_OF, True),
        ("this, kind='sources'", INSERTS, True),
    ],
)
@pytest.mark.parametrize("by_name", [False, True])
def test_an_edited_macro_counts_in_the_branches_that_a_hooks_arguments_take(
    arguments: str, edited: Macro, counts: bool, by_name: bool
) -> None:
    hook = f"{{{{ inserts({arguments}) }}}}"
    hook += "{{ context['line'](this) }}" if by_name else ""

    def with_macros(*macros: Macro) -> Project:
        return side({}, *macros, hook=hook)

    now = copy(edited)
    now.macro_sql = edited.macro_sql.replace("{{ line(n) }}", "{{ line(n) }},")
    now.macro_sql = now.macro_sql.replace("insert into", "insert overwrite into")
    now.macro_sql = now.macro_sql.replace("it.meta.limit", "it.meta.most")
    then = [INSERTS, ROWS_OF, LINE]
    here = [now if m is edited else m for m in then]
    assert (with_macros(*then).macros == with_macros(*here).macros) is False
    expected = TESTS[0] if counts or by_name else []
    assert what_changed(with_macros(*then), with_macros(*here))[0] == expected


def test_a_hook_that_walks_over_all_nodes_reads_each() -> None:
    walks = "{% for n in graph.nodes.values() %} drop {{ n.meta.limit }} {% endfor %}"

    def with_other(limit: int, hook: str) -> Project:
        made = side(hook=hook)
        other = node("model.p.other", "select 1 as x", config={"meta": {"limit": limit}})
        return project(*made.nodes.values(), other, catalog=LISTED, adapter="duckdb")

    assert what_changed(with_other(3, walks), with_other(4, walks))[0] == ["t"]
    assert what_changed(with_other(3, "select 1"), with_other(4, "select 1")) == NOTHING


def test_what_a_hook_reads_of_a_property_and_writes_elsewhere() -> None:
    def with_log(limit: int, hook: str) -> Project:
        made = side({"meta": {"limit": limit}}, hook=hook)
        log = node("model.p.log", "select 0 as x", config=INCREMENTAL)
        return project(
            *made.nodes.values(), log, check("of_log", "select x from s.log", "model.p.log"),
            catalog=LISTED, adapter="duckdb",
        )  # fmt: skip

    writes = "insert into s.log select {{ model.meta.limit }}"
    assert what_changed(with_log(3, writes), with_log(4, writes))[0] == ["of_log"]
    writes = "insert into s.log select 3"
    assert what_changed(with_log(3, writes), with_log(4, writes)) == NOTHING


def test_what_the_macro_that_runs_tests_reads() -> None:
    def with_meta(limit: int, text: str) -> Project:
        ours = macro("macro.p.get_test_sql", text)
        test = check("t", "select id from s.a", "model.p.a", config={"meta": {"limit": limit}})
        return project(
            orders(),
            node("model.p.a", "select id from s.orders", RAW),
            test,
            catalog=LISTED,
            macros=[*DBT, ours],
        )

    reads = "select {{ config.get('meta').limit }}"
    assert what_changed(with_meta(3, reads), with_meta(4, reads))[0] == ["t"]
    assert what_changed(with_meta(3, "select"), with_meta(4, "select"))[0] == []


# --- Python ----------------------------------------------------------------------------------------

PYTHON = """
def model(dbt, session):
    # the first ones
    df = dbt.ref("orders").limit({read})
    return df.assign(half=df.amount // 2)
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("// 2", "// 3", True),
        ("    return", "    if df:\n        return", True),
        ("limit(3)", "limit(3 )", False),
        ("# the first ones", "# -- all /* of them", False),
        ("    df", "    df ", False),
        ('"orders"', "'orders'", False),
        ('"orders"', '"Orders"', True),
    ],
)
def test_a_python_model_is_compared_as_python(old: str, new: str, counts: bool) -> None:
    code = PYTHON.replace("{read}", "3")
    assert old in code
    base, head = (side(sql=None, raw=c, language="python") for c in (code, code.replace(old, new)))
    assert what_changed(base, head) == (TESTS if counts else NOTHING)


@pytest.mark.parametrize(
    ("read", "before", "after", "counts"),
    [
        ("dbt.config.get('meta')['limit']", META, OTHER_LIMIT, True),
        ("dbt.config.meta_get('limit')", META, OTHER_LIMIT, True),
        ("dbt.config.get('limit')", META, OTHER_LIMIT, True),
        ("dbt.config.get('tags')", {"tags": ["a"]}, {"tags": ["b"]}, True),
        ("dbt.config.get(which)", {"tags": ["a"]}, {"tags": ["b"]}, True),
        ("helper(dbt.config)", {"tags": ["a"]}, {"tags": ["b"]}, True),
        ("getattr(dbt, 'config').get('tags')", {"tags": ["a"]}, {"tags": ["b"]}, True),
        ("3", META, OTHER_LIMIT, False),
        ("3", {}, {"packages": ["numpy"]}, True),
        ("3", {}, {"what_is_this": 1}, True),
        ("dbt.config(materialized='table')", {"tags": ["a"]}, {"tags": ["b"]}, False),
    ],
)
def test_what_a_python_model_reads(
    read: str, before: dict[str, Any], after: dict[str, Any], counts: bool
) -> None:
    sides = (
        side(config, sql=None, raw=PYTHON.replace("{read}", read), language="python")
        for config in (before, after)
    )
    assert what_changed(*sides) == (TESTS if counts else NOTHING)


def test_what_is_declared_of_a_model_that_is_not_analysed() -> None:
    sql = "select ((( from s.orders"
    base, head = (
        side(CONTRACT, columns=of(data_type=t), sql=sql, raw="select 1") for t in ("int", "text")
    )
    assert what_changed(base, head) == TESTS


@pytest.mark.parametrize(
    ("config", "counts"),
    [
        ({"volatility": "stable"}, True),
        ({"runtime_version": "3.12"}, True),
        ({"what_is_this": 1}, True),
        ({"meta": {"a": 1}, "docs": {"show": False}}, False),
    ],
)
def test_what_is_said_of_a_function(config: dict[str, Any], counts: bool) -> None:
    def with_function(**config: Any) -> Project:
        function = node("function.p.f", None, raw="x + 1", config=config)
        a = node("model.p.a", "select f(id) as id from s.orders", RAW, "function.p.f")
        test = check("t", "select id from s.a where id is null", "model.p.a")
        return project(orders(), function, a, test, catalog=LISTED)

    expected = (["t"], ["function.p.f", "model.p.a"]) if counts else NOTHING
    assert what_changed(with_function(), with_function(**config)) == expected


@pytest.mark.parametrize("name", ["unique_key", "check_cols", "column_types", "updated_at"])
def test_a_materialization_of_ones_own_may_look_at_any_key(name: str) -> None:
    own = {"materialized": "own"}
    assert what_changed(side(own), side({**own, name: "x"})) == TESTS


# --- references ------------------------------------------------------------------------------------


def referring(latest: int, hook: str = "", raw: str = "", **more: Any) -> Project:
    """m in two versions, and a that refers to the latest, to the first and to the second."""
    versions = [
        node(
            f"model.p.m.v{v}",
            f"select {v} as id",
            config=VIEW,
            version=v,
            latest_version=latest,
        )
        for v in (1, 2)
    ]
    versions = [
        replace(one, name="m", alias=f"m_v{v}", relation_name=f"`s`.`m_v{v}`")
        for v, one in enumerate(versions, 1)
    ]
    refs = [Ref(name="m", version=1), Ref(name="m"), Ref(name="m", version=2)]
    a = node(
        "model.p.a",
        more.pop("sql", "select id from s.m_v1 union all select id from s.m_v2"),
        "model.p.m.v1",
        "model.p.m.v2",
        refs=refs,
        raw=raw or "...",
        **more,
    )
    if hook:
        a.config["post-hook"] = [{"sql": hook}]
    b = node("model.p.b", "select 1 as id", config={"materialized": "table"})
    of_b = check("of_b", "select id from s.b", "model.p.b")
    return project(*versions, a, b, check("t", "select id from s.a", "model.p.a"), of_b)


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({"hook": "delete from {{ this }} where id in (select id from {{ ref('m') }})"}, True),
        (
            {
                "raw": "select {% if is_incremental() %} {{ ref('m') }} {% endif %}",
                "config": INCREMENTAL,
            },
            True,
        ),
        (
            {"raw": "def model(dbt, s): return dbt.ref('m')", "language": "python", "sql": None},
            True,
        ),
        ({"hook": "delete from {{ this }} where id = 3"}, False),
        ({"hook": "insert into s.b select 3"}, False),
        ({}, False),
    ],
)
def test_a_reference_that_no_sql_shows_means_another_version(
    more: dict[str, Any], counts: bool
) -> None:
    base, head = (referring(latest, **dict(more)) for latest in (1, 2))
    assert what_changed(base, head)[0] == (["t"] if counts else [])


def test_a_reference_of_a_hook_that_writes_elsewhere_means_another_version() -> None:
    hook = "insert into s.b select id from {{ ref('m') }}"
    base, head = (referring(latest, hook) for latest in (1, 2))
    assert what_changed(base, head)[0] == ["of_b"]


# --- unit tests ------------------------------------------------------------------------------------


def unit(*, schema: str = "s", unrendered: str | None = None, **other: Any) -> Project:
    """A unit test of a, which reads a source and another model."""
    source = orders()
    source = replace(source, schema=schema, unrendered_schema=unrendered or schema)
    b = node("model.p.b", "select 1 as id", config=other)
    a = node(
        "model.p.a", "select o.id from s.orders as o join s.b using (id)", RAW, "model.p.b", raw="."
    )
    made = node("unit_test.p.a.u", None, "model.p.a", model="a")
    made = replace(made, given=[{"input": "source('raw', 'orders')", "rows": [{"id": 1}]}])
    return project(source, b, a, made, catalog=LISTED)


@pytest.mark.parametrize(
    ("base", "head", "runs"),
    [
        (unit(), unit(schema="elsewhere"), True),
        (unit(), unit(alias="other"), True),
        (unit(), unit(schema="s"), False),
        (unit(), unit(materialized="ephemeral"), True),  # of which there is no relation to look at
        (unit(), unit(materialized="view"), False),
        (unit(), unit(meta={"a": 1}), False),
        (
            unit(schema="prod", unrendered="{{ target.name }}"),
            unit(schema="ci", unrendered="{{ target.name }}"),
            False,
        ),
    ],
)
def test_a_unit_test_needs_its_inputs_where_they_were(
    base: Project, head: Project, runs: bool
) -> None:
    for side_ in (base, head):  # what compiled SQL names is another matter
        side_.nodes["model.p.a"] = replace(side_.nodes["model.p.a"], compiled_code="select 1 as id")
    assert bool(picked(base, head).unit_tests) == runs


# --- sources ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "counts"),
    [
        ({"external": {"location": "s3://x"}}, True),
        ({"quoting": {"identifier": True}}, True),
        ({"config": {"what_is_this": 1}}, True),
        ({"config": {"meta": {"external_location": "x.csv"}}}, True),
        ({"loaded_at_field": "at", "freshness": {"warn_after": {"count": 1}}}, False),
        ({"config": {"meta": {"a": 1}, "event_time": "at", "tags": ["x"]}}, False),
        ({"quoting": {"identifier": None}, "loader": "x", "description": "y"}, False),
    ],
)
def test_what_is_said_of_a_source(properties: dict[str, Any], counts: bool) -> None:
    def with_source(**more: Any) -> Project:
        source: Node = node(RAW, columns=["id", "amount", "status"], **more)
        source = replace(source, meta=source.config.get("meta", {}))
        a = node("model.p.a", "select id, amount from s.orders", RAW)
        tests = check("t", "select id from s.a where id is null", "model.p.a")
        return project(source, a, tests, catalog=LISTED, adapter="duckdb")

    assert what_changed(with_source(), with_source(**properties)) == (TESTS if counts else NOTHING)


# --- settings that only the time decides --------------------------------------------------------------

CLOCK = '["d > \'" ~ {} ~ "\'"]'


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("run_started_at", "run_started_at", False),
        ("modules.datetime.date.today()", "modules.datetime.date.today()", False),
        ("run_started_at", "modules.datetime.date.today()", True),
        ("run_started_at ~ var('days')", "run_started_at ~ var('days')", True),
        ("since", "since", True),
    ],
)
def test_a_setting_that_only_the_time_decides(before: str, after: str, counts: bool) -> None:
    """Both sides were parsed at another moment; what else decides the value counts."""

    def parsed(expression: str, value: str) -> Project:
        config = f"config(incremental_predicates={CLOCK.format(expression)})"
        raw = f"{{% set since = var('since') %}}{{{{ {config} }}}}select id from s.orders"
        given = INCREMENTAL | {"incremental_predicates": [f"d > '{value}'"]}
        a = node("model.p.a", "select id from s.orders", RAW, raw=raw, config=given)
        test = check("t", "select id from s.a where id is null", "model.p.a")
        return project(orders(), a, test, catalog=LISTED)

    base, head = parsed(before, "2026-01-01"), parsed(after, "2026-01-02")
    assert bool(picked(base, head).tests) is counts
