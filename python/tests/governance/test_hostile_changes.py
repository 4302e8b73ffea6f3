"""Changes that try to talk the gate into APPROVED, and their harmless twins."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hand_made import macro, node, project
from msgspec.structs import replace
from twin_project import Command

from dbt_ripple.artifacts import Column, Macro, Node, Project
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import GateReport, gate, gate_from
from dbt_ripple.governance.policy import Policy, base_masks, policy_of
from dbt_ripple.governance.ripple_yml import Config, local_packages

RAW = "source.p.raw.people"
STG = "model.p.stg"
SHOWN = "model.p.customers"
STRICT = Config(
    dict.fromkeys(("column_removed", "pii_untagged", "pii_exposed", "column_redefined"), "block")
)
EMAIL = {"email": "email"}


def tagged(columns: dict[str, str], *untagged: str) -> dict[str, Column]:
    kinds = {**dict.fromkeys(untagged), **columns}
    return {c: Column(name=c, meta={"pii": kind} if kind else {}) for c, kind in kinds.items()}


def raw(kinds: dict[str, str] = EMAIL) -> Node:
    return replace(node(RAW, columns=["id"]), columns=tagged(kinds, "id", "name", "city"))


def stg(sql: str = "select id, name, city, email from `s`.`people`", **more: Any) -> Node:
    kinds = more.pop("kinds", EMAIL)
    made = node(STG, sql, RAW, **more)
    return replace(made, columns=tagged(kinds))


def customers(sql: str = "select id, name, city from `s`.`stg`", *above: str, **more: Any) -> Node:
    more = {"access": "public", "meta": {"public": True}, **more}
    return node(SHOWN, sql, *(above or (STG,)), **more)


def side(*nodes: Node, **more: Any) -> Project:
    given = {n.unique_id: n for n in (raw(), stg(), customers())} | {n.unique_id: n for n in nodes}
    listed = {RAW: ["id", "name", "city", "email"]}
    return project(*given.values(), catalog=listed, **more)


def judged(head: Project, base: Project | None = None, config: Config = STRICT) -> GateReport:
    return gate(base or side(), head, config=config)


def found(report: GateReport) -> set[tuple[str, str, str | None, str | None]]:
    return {(f.rule, f.level, f.unique_id, f.column) for f in report.findings}


def at(made: Node, **place: Any) -> Node:
    """A node that its config puts elsewhere."""
    config = {**made.config, **place}
    schema = f"s_{place['schema']}" if "schema" in place else made.schema
    alias = place.get("alias", made.alias)
    relation = f"`{schema}`.`{alias}`"
    return replace(
        made,
        config=config,
        schema=schema,
        alias=alias,
        relation_name=relation,
        unrendered_config={**made.unrendered_config, **place},
    )


def without(given: Project, *unique_ids: str) -> Project:
    nodes = {u: n for u, n in given.nodes.items() if u not in unique_ids}
    catalog = {u: [*map(str, [c.name for c in columns])] for u, columns in given.catalog.items()}
    return project(*nodes.values(), catalog=catalog)


def test_the_same_twice_is_approved() -> None:
    assert judged(side()).decision == "APPROVED"


# --- where a relation is ---------------------------------------------------------------------------


@pytest.mark.parametrize("place", [{"alias": "people_2"}, {"schema": "hidden"}, {"database": "x"}])
def test_a_public_relation_that_is_elsewhere_is_removed(place: dict[str, str]) -> None:
    report = judged(side(at(customers(), **place)))
    assert ("column_removed", "block", SHOWN, None) in found(report)
    assert report.decision == "BLOCKED"


@pytest.mark.parametrize("place", [{"alias": "customers"}, {"alias": "Customers"}])
def test_to_write_its_place_down_moves_nothing(place: dict[str, str]) -> None:
    made = customers()
    config = {**made.config, **place}
    report = judged(side(replace(made, config=config, unrendered_config=place)))
    assert report.decision == "APPROVED"


def test_another_target_moves_nothing() -> None:
    def of_ci(made: Node) -> Node:
        name = made.alias or made.name
        return replace(made, schema="ci", relation_name=f"`ci`.`{name}`")

    texts = [
        of_ci(stg()),
        of_ci(customers("select id, name, city from `ci`.`stg`")),
        of_ci(node("model.p.other", "select 1 as a")),
    ]
    base = side(node("model.p.other", "select 1 as a"))
    assert judged(side(*texts), base).decision == "APPROVED"
    # ... and one that does not go with the others has moved.
    alone = replace(texts[1], schema="elsewhere", relation_name="`elsewhere`.`customers`")
    assert judged(side(texts[0], alone, texts[2]), base).decision == "BLOCKED"


def test_a_target_may_name_all_relations_otherwise() -> None:
    def of_ci(made: Node) -> Node:
        return replace(made, alias=f"pr7_{made.name}", relation_name=f"`s`.`pr7_{made.name}`")

    head = side(of_ci(stg()), of_ci(customers("select id, name, city from `s`.`pr7_stg`")))
    assert judged(head).decision == "APPROVED"


def test_the_name_may_not_be_taken_over_by_a_relation_with_less() -> None:
    old = at(customers(), alias="customers_old")
    thin = at(node("model.p.thin", "select id, name from `s`.`stg`", STG), alias="customers")
    report = judged(side(old, thin))
    assert ("column_removed", "block", SHOWN, "city") in found(report)
    same = at(node("model.p.same", "select id, name, city from `s`.`stg`", STG), alias="customers")
    assert "column_removed" not in {f.rule for f in judged(side(old, same)).findings}
    other = at(
        node("model.p.other", "select id, upper(name) as name, city from `s`.`stg`", STG),
        alias="customers",
    )
    assert ("column_redefined", "block", SHOWN, None) in found(judged(side(old, other)))


def test_a_model_of_another_file_may_stand_in_its_place() -> None:
    renamed = at(
        node("model.p.clients", "select id, name, city from `s`.`stg`", STG), alias="customers"
    )
    head = without(side(renamed), SHOWN)
    assert judged(head).decision == "APPROVED"
    thin = at(node("model.p.clients", "select id, name from `s`.`stg`", STG), alias="customers")
    assert judged(without(side(thin), SHOWN)).decision == "BLOCKED"


def test_a_public_relation_that_is_not_built_any_more_is_removed() -> None:
    made = customers(config={"materialized": "ephemeral"})
    report = judged(side(made))
    assert ("column_removed", "block", SHOWN, None) in found(report)


def test_what_an_exposure_reads_may_not_move_either() -> None:
    private = customers(access=None, meta={})
    seen = node("exposure.p.board", None, SHOWN, meta={"referenced_columns": ["id"]})
    moved = at(private, alias="elsewhere")
    report = judged(side(moved, seen), side(private, seen))
    assert ("column_removed", "block", SHOWN, None) in found(report)
    assert judged(side(moved), side(private)).decision == "APPROVED"


# --- versions --------------------------------------------------------------------------------------


def versioned(sql: str, **more: Any) -> Node:
    made = replace(customers(sql), unique_id=f"{SHOWN}.v1", version=1, latest_version=1)
    return replace(made, alias="customers_v1", relation_name="`s`.`customers_v1`", **more)


def test_versions_do_not_hide_a_column_that_goes() -> None:
    thin = without(side(versioned("select id, name from `s`.`stg`")), SHOWN)
    report = judged(thin)
    assert ("column_removed", "block", SHOWN, "city") in found(report)


def test_a_name_may_not_come_to_mean_another_version_in_silence() -> None:
    def both(latest: int, **meta: str) -> Project:
        texts = {1: "select id, name, city from `s`.`stg`", 2: "select id, name from `s`.`stg`"}
        made = (
            replace(
                node(f"{SHOWN}.v{v}", text, STG, access="public", meta=meta if v == 2 else {}),
                name="customers",
                version=v,
                latest_version=latest,
            )
            for v, text in texts.items()
        )
        return without(side(*made), SHOWN)

    said = ("contract_version_without_migration", "warn", f"{SHOWN}.v2", None)
    assert said in found(judged(both(2), both(1)))
    assert judged(both(2, migration="city is gone"), both(1)).decision == "APPROVED"
    assert judged(both(2), both(2)).decision == "APPROVED"


def test_to_add_versions_alone_is_said_and_not_blocked() -> None:
    head = without(side(versioned("select id, name, city from `s`.`stg`")), SHOWN)
    report = judged(head)
    assert report.decision == "CAUTION"
    assert ("column_removed", "warn", SHOWN, None) in found(report)
    kept = replace(
        versioned("select id, name, city from `s`.`stg`"),
        config={"materialized": "table", "alias": "customers"},
        alias="customers",
        relation_name="`s`.`customers`",
    )
    assert judged(without(side(kept), SHOWN)).decision == "APPROVED"


def test_a_first_contract_version_needs_a_word_on_migration() -> None:
    thin = "select id, name from `s`.`stg`"
    rule = "contract_version_without_migration"
    report = judged(side(customers(thin, meta={"public": True, "contract_version": "2"})))
    assert (rule, "warn", SHOWN, None) in found(report)
    assert report.decision == "CAUTION"
    explained = {"public": True, "contract_version": "2", "migration": "ask the owner"}
    assert judged(side(customers(thin, meta=explained))).decision == "APPROVED"
    # A first version of what stays as it is needs none.
    kept = customers(meta={"public": True, "contract_version": "1"})
    assert judged(side(kept)).decision == "APPROVED"


# --- tags ------------------------------------------------------------------------------------------

EXPOSING = "select id, name, city, email from `s`.`stg`"


def test_a_tag_that_goes_is_a_finding_and_counts_for_this_change() -> None:
    head = side(raw({}), stg(kinds={}), customers(EXPOSING))
    report = judged(head)
    assert ("pii_tag_removed", "warn", RAW, "email") in found(report)
    assert ("pii_tag_removed", "warn", STG, "email") in found(report)
    assert ("pii_exposed", "block", SHOWN, "email") in found(report)


@pytest.mark.parametrize("value", ["none", False, "no"])
def test_no_reason_takes_away_what_base_tags(value: object) -> None:
    denied = {"pii": value, "pii_reason": "nobody minds"}
    columns = {"email": Column(name="email", meta=denied)}
    head = side(
        replace(raw(), columns=columns), replace(stg(), columns=columns), customers(EXPOSING)
    )
    report = judged(head)
    assert ("pii_tag_removed", "warn", RAW, "email") in found(report)
    assert ("pii_exposed", "block", SHOWN, "email") in found(report)


def test_what_is_newly_declassified_is_said() -> None:
    reason = {"pii": "none", "pii_reason": "nobody minds"}
    shown = replace(customers(EXPOSING), columns={"email": Column(name="email", meta=reason)})
    report = judged(side(shown))
    assert found(report) >= {("pii_tag_removed", "warn", SHOWN, "email")}
    assert report.decision == "CAUTION"
    # It was so on base, and somebody looked at it then.
    assert judged(side(shown), side(shown)).decision == "APPROVED"


def test_a_tag_on_the_whole_node_may_not_go_either() -> None:
    base = side(replace(raw(), columns={}, meta={"pii": True}), stg(kinds={}))
    head = side(replace(raw(), columns={}), stg(kinds={}), customers(EXPOSING))
    report = judged(head, base)
    assert ("pii_exposed", "block", SHOWN, "email") in found(report)


def test_a_tag_may_not_go_with_its_column() -> None:
    """The source is not tagged: the tag was on what was made of it, and that is gone."""
    base = side(raw({}), stg())
    renamed = stg("select id, name, city, email as contact from `s`.`people`", kinds={})
    head = side(raw({}), renamed, customers("select id, name, city, contact from `s`.`stg`"))
    report = judged(head, base)
    assert ("pii_exposed", "block", SHOWN, "contact") in found(report)
    # A column that goes for good is no finding of it.
    gone = side(raw({}), stg("select id, name, city from `s`.`people`", kinds={}))
    assert "pii_tag_removed" not in {f.rule for f in judged(gone, base).findings}


def test_a_source_that_is_not_declared_any_more_loses_its_tags() -> None:
    report = judged(without(side(), RAW))
    assert ("pii_tag_removed", "warn", RAW, "email") in found(report)


def test_what_base_calls_public_is_so() -> None:
    head = side(customers(EXPOSING, meta={}))
    assert ("pii_exposed", "block", SHOWN, "email") in found(judged(head))


# --- masks -----------------------------------------------------------------------------------------

MARKED = "case 'dbt_ripple.mask' when 'dbt_ripple.mask' then {} end"
MASK = "macro.dbt_ripple.mask"
MACROS = (
    macro(MASK, "{% macro mask(column) %}case 'dbt_ripple.mask' ...{% endmacro %}"),
    macro("macro.p.hide", "{% macro hide(c) %}{{ dbt_ripple.mask(c) }}{% endmacro %}", MASK),
    macro("macro.p.forge", "{% macro forge(c) %}case 'dbt_ripple.mask' when {% endmacro %}"),
)
CALL = "select id, name, city, {{ dbt_ripple.mask('email') }} as email from {{ ref('stg') }}"


def masking(raw_code: str, *macros: str, expression: str = MARKED.format("email")) -> GateReport:
    sql = f"select id, name, city, {expression} as email from `s`.`stg`"
    head = side(customers(sql, raw=raw_code, macros=[*macros]), macros=MACROS)
    return judged(head, side(macros=MACROS))


@pytest.mark.parametrize(
    ("raw_code", "macros"),
    [
        (CALL, [MASK]),
        ("select id, name, city, {{ hide('email') }} as email", ["macro.p.hide"]),
    ],
)
def test_what_the_macro_made_is_a_mask(raw_code: str, macros: list[str]) -> None:
    assert masking(raw_code, *macros).decision == "APPROVED"


@pytest.mark.parametrize(
    ("raw_code", "macros"),
    [
        (f"select id, name, city, {MARKED.format('email')} as email", []),
        (f"select {{{{ dbt_ripple.mask('1') }}}} as a, {MARKED.format('email')} as email", [MASK]),
        ("{{ dbt_ripple.mask('1') }} {{ \"case 'dbt_ripple\" ~ \".mask' when\" }} email", [MASK]),
        ("{{ dbt_ripple.mask('1') }}, {{ forge('email') }}", [MASK, "macro.p.forge"]),
    ],
)
def test_a_mark_that_somebody_wrote_masks_nothing(raw_code: str, macros: list[str]) -> None:
    report = masking(raw_code, *macros)
    assert ("pii_exposed", "block", SHOWN, "email") in found(report)


def test_the_mark_of_an_ephemeral_model_stands_in_its_readers() -> None:
    config = {"materialized": "ephemeral"}
    marked = MARKED.format("email")
    thin = node(
        "model.p.thin",
        f"select id, name, city, {marked} as email from `s`.`stg`",
        *(STG,),
        raw=CALL,
        macros=[MASK],
        config=config,
    )
    sql = f"with __dbt__cte__thin as (select id, name, city, {marked} as email from `s`.`stg`) select * from __dbt__cte__thin"
    head = side(
        thin, customers(sql, "model.p.thin", raw="select * from {{ ref('thin') }}"), macros=MACROS
    )
    assert judged(head, side(macros=MACROS)).decision == "APPROVED"
    forged = replace(
        thin, raw_code=f"select {marked} as email", depends_on=replace(thin.depends_on, macros=[])
    )
    head = side(
        forged, customers(sql, "model.p.thin", raw="select * from {{ ref('thin') }}"), macros=MACROS
    )
    assert ("pii_exposed", "block", SHOWN, "email") in found(judged(head, side(macros=MACROS)))


def listing(functions: list[str]) -> Node:
    return node(
        "model.dbt_ripple.ripple_pii_columns",
        "select 1 as a",
        meta={"masking_functions": functions},
    )


def test_base_says_which_functions_mask() -> None:
    sql = "select id, name, city, identity(email) as email from `s`.`stg`"
    base = side(listing(["token"]))
    head = side(listing(["token", "identity"]), customers(sql))
    masks = base_masks(base, head)
    assert masks == {"token"}
    report = judged(head.having(masking=masks), base)
    assert ("policy_changed", "warn", None, None) in found(report)
    assert ("pii_exposed", "block", SHOWN, "email") in found(report)
    # Without the package on base there is nothing to compare with.
    assert base_masks(side(), head) is None


def test_another_masking_macro_is_said() -> None:
    own = Macro(
        unique_id="macro.p.default__mask_sha2",
        name="default__mask_sha2",
        package_name="p",
        macro_sql="{% macro default__mask_sha2(c) %}{{ c }}{% endmacro %}",
    )
    report = judged(side(macros=[*MACROS, own]), side(macros=MACROS))
    assert ("policy_changed", "warn", None, None) in found(report)
    laid_out = replace(own, macro_sql=own.macro_sql.replace("}{", "}\n{"))
    both = (
        side(macros=[*MACROS, own]),
        side(macros=[*MACROS, replace(own, macro_sql=f" {own.macro_sql}")]),
    )
    assert judged(both[1], both[0]).decision == "APPROVED"
    assert judged(side(macros=[*MACROS, laid_out]), both[0]).decision == "CAUTION"


# --- packages --------------------------------------------------------------------------------------


def test_a_package_of_the_repository_is_judged() -> None:
    leak = node("model.tools.leak", "select email from `s`.`stg`", STG, meta={"public": True})
    head = side(leak)
    assert not {f.rule for f in judged(head).findings} & {"pii_exposed"}
    own = frozenset({"tools"})
    report = judged(head.having(local_packages=own), side().having(local_packages=own))
    assert ("pii_exposed", "block", "model.tools.leak", "email") in found(report)


def test_which_packages_the_repository_holds(tmp_path: Path) -> None:
    (tmp_path / "packages.yml").write_text(
        "packages: [{local: ../tools}, {package: dbt-labs/dbt_utils, version: 1.0.0}]"
    )
    (tmp_path / "dbt_packages" / "dbt_utils").mkdir(parents=True)
    (tmp_path / "dbt_packages" / "dbt_utils" / "dbt_project.yml").write_text("name: dbt_utils")
    project_dir = tmp_path / "shop"
    project_dir.mkdir()
    (project_dir / "dependencies.yml").write_text("packages: [{local: ../tools}]")
    for name, also in (("tools", "packages: [{local: ../more}]"), ("more", "packages: oops")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dbt_project.yml").write_text(f"name: {name}_of_ours")
        (tmp_path / name / "packages.yml").write_text(also)
    assert local_packages(project_dir) == {"tools_of_ours", "more_of_ours"}
    assert local_packages(tmp_path) == frozenset()


# --- code that is compiled elsewhere ---------------------------------------------------------------

THERE = "{% if target.name == 'prod' %}, email{% endif %}"
PLAIN = "select id, name, city from `s`.`stg`"


@pytest.mark.parametrize(
    "raw_code",
    [
        f"select id, name, city {THERE} from {{{{ ref('stg') }}}}",
        "select id, name, {{ 'email' if env_var('CI', '') == '' else 'city' }} as city",
        "select id, name, {{ {'ci': 'city'}.get(target.name, 'email') }} as city",
        "{% set prod = target.name == 'prod' %}select id{% if prod %}, email{% endif %}",
        "select id, {{ env_var('COLUMN', 'name') }} as name, city",
        "{% if run_started_at.year > 2026 %} select email {% endif %} select id, name, city",
        "{{ pick(target.name) }}",
        "select id, {{ target.name }} as name, city from {{ ref('stg') }}",
        "select {{ target.name.replace('ci', 'name') }} as name from {{ ref('stg') }}",
        "select a.{{ target.schema }} from {{ ref('stg') }} as a",
        "select id from {{ target.name }}.stg",
        "select '{{ target.name }}' as a, m.{{ target.name }} as b from {{ ref('stg') }} as m",
        "select 'it' as a, m.{{ target.name }} as b, 's' as c from {{ ref('stg') }} as m",
        "{% if this.schema == 'prod' %} select email {% endif %} select id, name, city",
        "{% if ref('stg').database == 'prod' %} select email {% endif %} select id",
        "{% set there = this.schema == 'prod' %}{% if there %} select email {% endif %}",
        "{% for one in [this] %}{% if one.schema == 'p' %} email {% endif %}{% endfor %}",
        "select {{ {'prod': 'email'}[this.schema] }} from {{ ref('stg') }}",
        "select {{ {'prod': 'email'}.get(this.schema, 'id') }} from {{ ref('stg') }}",
        "select {{ this.schema.replace('prod', 'email') }} from {{ ref('stg') }}",
        "select {{ this.schema | replace('prod', 'email') }} from {{ ref('stg') }}",
        "{% if schema == 'prod' %} select email {% endif %} select id, name, city",
        "{% if adapter.get_relation('a', 'b', 'c') %} select email {% endif %} select id",
        "{% set r = run_query('select 1') %}{% if r %} select email {% endif %} select id",
        "{% if builtins.var('x', '') %} select email {% endif %} select id, name, city",
        "{% if selected_resources | length > 9 %} select email {% endif %} select id",
        "select id {% if is_incremental() %}, email {% endif %} from {{ ref('stg') }}",
        "select id {% if is_incremental() %} where 1 = 1 union all select email {% endif %}",
        "select id {% if is_incremental() %} where a = '(') , (select email {% endif %}",
        "select id {% if is_incremental() %} where a) , (select email {% endif %}",
        "select id {% if is_incremental() %} where a {% else %}, email {% endif %}",
    ],
)
def test_what_compiles_to_something_else_elsewhere_is_said(raw_code: str) -> None:
    report = judged(side(customers(PLAIN, raw=raw_code)), side(customers(PLAIN, raw=PLAIN)))
    assert ("unjudged_code", "warn", SHOWN, None) in found(report)
    # What was there before is not this change's.
    again = judged(
        side(customers(PLAIN, raw=raw_code, description="a word")),
        side(customers(PLAIN, raw=raw_code)),
    )
    assert again.decision == "APPROVED"


@pytest.mark.parametrize(
    "raw_code",
    [
        "select id, name, city from {{ target.schema }}.stg",
        "select id, name, city from {{ ref('stg') }} where '{{ var(\"since\") }}' > ''",
        "select id, name, city {% if true %}{% endif %} from {{ ref('stg') }}",
        "select id, name, city {# if target.name == 'prod' #} from {{ ref('stg') }}",
        "select id from {{ target.database }}.{{ target.schema }}.stg join {{ target.schema }}.b",
        "select 'of_{{ target.name }}' as name, id, city from {{ ref('stg') }}",
        "select id from {{ this }} where {{ this.schema }}.f(id) = '{{ this.name }}'",
        "{% set all = [ref('stg'), ref('b')] %}{% for r in all %} from {{ r }} {% endfor %}",
        "{% for r in [1] %}{% if not loop.last %} , {% endif %}{% endfor %}",
        "select id {% if is_incremental() %} where a > (select max(a) from {{ this }}) {% endif %}",
        "{% set later = is_incremental() %}select id where a {% if later %} and b = ')' {% endif %}",
        "{% set r = run_query('select 1') %}{% for row in r %} {{ row }} {% endfor %}",
    ],
)
def test_what_is_printed_decides_nothing(raw_code: str) -> None:
    report = judged(side(customers(PLAIN, raw=raw_code)), side(customers(PLAIN, raw=PLAIN)))
    assert "unjudged_code" not in {f.rule for f in report.findings}


def test_the_branch_counts_and_not_only_its_condition() -> None:
    def of(column: str) -> Project:
        code = f"select id, name, city {THERE.replace('email', column)} from {{{{ ref('stg') }}}}"
        return side(customers(PLAIN, raw=code))

    assert found(judged(of("email"), of("name"))) == {("unjudged_code", "warn", SHOWN, None)}


def test_what_decides_and_is_as_it_was_is_not_said() -> None:
    def of(more: str) -> Project:
        code = (
            "{{ config(enabled=(target.type == 'duckdb' or env_var('A', '') == 'b')) }} select id"
        )
        return side(customers(PLAIN, raw=f"{code}, name, city {more}"))

    assert judged(of("-- a word"), of("")).decision == "APPROVED"
    assert judged(of("{{ pick(target.name) }}"), of("")).decision == "CAUTION"


def test_hooks_config_and_macros_are_code_too() -> None:
    hook = {"sql": f"grant select on {{{{ this }}}} to x {THERE}", "transaction": True}
    hooked = customers(config={"materialized": "table", "post-hook": [hook]})
    assert ("unjudged_code", "warn", SHOWN, None) in found(judged(side(hooked)))
    told = customers(unrendered={"alias": "{{ 'x' if target.name == 'prod' else none }}"})
    assert ("unjudged_code", "warn", SHOWN, None) in found(judged(side(told)))
    one, other = (
        side(macros=[macro("macro.p.pick", f"{{% macro pick() %}}id{text}{{% endmacro %}}")])
        for text in ("", THERE)
    )
    assert found(judged(other, one)) == {("unjudged_code", "warn", None, None)}
    installed = side(
        macros=[macro("macro.x.pick", f"{{% macro pick() %}}id{THERE}{{% endmacro %}}")]
    )
    assert judged(installed).decision == "APPROVED"


def test_a_new_model_that_is_disabled_here_is_said() -> None:
    head = side().having(disabled=["model.p.secret", "model.x.of_a_package", "test.p.some"])
    assert found(judged(head)) == {("unjudged_code", "warn", "model.p.secret", None)}
    assert judged(head, side().having(disabled=["model.p.secret"])).decision == "APPROVED"


@pytest.mark.parametrize(
    "sql",
    [
        "select * from query_table('stg_' || 'x')",
        "select id from query('select email from stg')",
        "select id from IDENTIFIER ('s.' || 'stg')",
        "execute  immediate 'select email from stg'",
    ],
)
def test_a_name_that_is_computed_is_said(sql: str) -> None:
    leak = node("model.p.leak", sql)
    assert ("unjudged_code", "warn", "model.p.leak", None) in found(judged(side(leak)))
    assert "unjudged_code" not in {f.rule for f in judged(side(leak), side(leak)).findings}


def test_words_in_a_comment_or_a_string_read_nothing() -> None:
    plain = node("model.p.plain", "select 'query_table(x)' as a -- query_table(x)")
    assert "unjudged_code" not in {f.rule for f in judged(side(plain)).findings}


def test_python_reads_by_names_too() -> None:
    code = "def model(dbt, session):\n    return session.sql('select email from stg')"
    leak = replace(node("model.p.leak", None, raw=code), language="python")
    assert ("unjudged_code", "warn", "model.p.leak", None) in found(judged(side(leak)))


# --- whose rules -----------------------------------------------------------------------------------


def written(folder: Path, text: str | None, project_yml: str = "name: p\n") -> Path:
    folder.mkdir()
    (folder / "dbt_project.yml").write_text(project_yml)
    if text is not None:
        (folder / "ripple.yml").write_text(text)
    return folder


OFF = "rules: {pii_exposed: off, column_removed: off}\n"
ON = "rules: {pii_exposed: block, column_removed: block}\n"
EXCEPTED = f"{ON}exceptions: [{{rule: pii_exposed, unique_id: {SHOWN}, reason: fine}}]\n"


def judged_by(policy: Policy, head: Project) -> GateReport:
    return gate_from(compare(side(), head), policy)


@pytest.mark.parametrize("text", [OFF, None, EXCEPTED, f"{OFF}hooks: {{writes: []}}\n"])
def test_base_judges(text: str | None, tmp_path: Path) -> None:
    policy = policy_of(written(tmp_path / "base", ON), written(tmp_path / "head", text))
    report = judged_by(policy, side(customers(EXPOSING)))
    assert report.decision == "BLOCKED"
    assert report.findings[0].rule == "policy_changed"
    assert judged_by(policy, side()).decision == "CAUTION"


def test_rules_that_stay_say_nothing(tmp_path: Path) -> None:
    policy = policy_of(written(tmp_path / "base", EXCEPTED), written(tmp_path / "head", EXCEPTED))
    assert judged_by(policy, side()).decision == "APPROVED"
    assert judged_by(policy, side(customers(EXPOSING))).decision == "CAUTION"  # pii_untagged
    nothing = policy_of(written(tmp_path / "x", None), written(tmp_path / "y", None))
    assert not nothing.changes and not nothing.notes
    default = policy_of(tmp_path / "base", written(tmp_path / "z", f"{EXCEPTED}# a word\n"))
    assert default.changes == []


def test_who_adopts_the_gate_is_judged_by_its_own_rules_and_told_so(tmp_path: Path) -> None:
    all_off = "rules: {policy_changed: off, pii_exposed: off, pii_untagged: off}\n"
    policy = policy_of(written(tmp_path / "base", None), written(tmp_path / "head", all_off))
    report = judged_by(policy, side(customers(EXPOSING)))
    assert found(report) == {("policy_changed", "warn", None, None)}


def test_where_the_rules_of_base_are_not_known_that_is_said(tmp_path: Path) -> None:
    head = written(tmp_path / "head", OFF)
    (tmp_path / "artifacts").mkdir()
    for base_dir in (None, tmp_path / "artifacts"):
        report = judged_by(policy_of(base_dir, head), side())
        assert any("rules of this change" in note.message for note in report.notes)
    unread = policy_of(written(tmp_path / "base", "rules: [1]\n"), head)
    assert "cannot be read" in unread.changes[0].message
    assert not policy_of(None, written(tmp_path / "plain", None)).notes


def test_each_change_of_the_rules_has_its_words(tmp_path: Path) -> None:
    base = written(
        tmp_path / "base",
        "rules: {blast_radius: {above: 3}}\n"
        "exceptions: [{rule: owner_missing, unique_id: a, reason: x}]\n",
    )
    head = written(
        tmp_path / "head",
        "rules: {blast_radius: {above: 9}, tags_required: {tier1: [owner]}}\n"
        "hooks: {writes: [a]}\n"
        "exceptions: [{rule: owner_missing, unique_id: b, reason: y}]\n",
    )
    assert [change.message for change in policy_of(base, head).changes] == [
        "rule blast_radius begins above 9, not above 3",
        "tags_required asks for {'tier1': ['owner']}, not for {}",
        "a new exception from owner_missing for b (y)",
        "an exception from owner_missing for a goes",
        "what hooks write to is said otherwise (hooks: writes)",
    ]


def test_the_command_takes_the_rules_that_lie_beside_the_artifacts_of_base(
    twin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "ripple.yml").write_text("rules: {reader_broken: off, column_removed: off}\n")
    (folder / "target").symlink_to(twin / "bad" / "target")
    (folder / "prod").mkdir()
    for file in (twin / "good" / "target").glob("*.json"):
        (folder / "prod" / file.name).symlink_to(file)
    monkeypatch.chdir(folder)
    _, out, err = command("gate", "--state", "prod")
    assert "reader_broken" not in out and "rules of this change" in err
    (folder / "prod" / "ripple.yml").write_text("rules: {reader_broken: block}\n")
    _, out, err = command("gate", "--state", "prod")
    assert "reader_broken" in out and "rules of this change" not in err
    assert "rule reader_broken goes from block to off" in out


def test_without_them_the_rules_are_those_where_the_branch_began(
    twin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(
            ["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True
        )

    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "accepted.csv").write_text("rule,unique_id,column_name,reason\n")
    (folder / "ripple.yml").write_text("rules: {reader_broken: block}\nexceptions: accepted.csv\n")
    git("init", "--quiet", "--initial-branch", "trunk")
    git("add", ".")
    git("commit", "--quiet", "--message", "base")
    git("update-ref", "refs/remotes/origin/trunk", "HEAD")
    (folder / "ripple.yml").write_text("rules: {reader_broken: off}\n")
    git("commit", "--all", "--quiet", "--message", "off")
    (folder / "target").symlink_to(twin / "bad" / "target")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GITHUB_BASE_REF", raising=False)
    state = ("gate", "--state", str(twin / "good" / "target"))
    _, out, err = command(*state)
    assert "goes from block to off" not in out and "rules of this change" in err
    monkeypatch.setenv("GITHUB_BASE_REF", "trunk")
    code, out, err = command(*state)
    assert "rule reader_broken goes from block to off" in out and "rules of this change" not in err
    assert code == 1
    # Rules that cannot be read there are as good as none.
    git("rm", "--quiet", "accepted.csv")
    (folder / "ripple.yml").write_text("exceptions: gone.csv\n")
    git("commit", "--all", "--quiet", "--message", "unread")
    git("update-ref", "refs/remotes/origin/trunk", "HEAD")
    (folder / "ripple.yml").write_text("rules: {reader_broken: off}\n")
    assert "rules of this change" in command(*state)[2]


# --- hooks, names, and what cannot be read ---------------------------------------------------------


def hooked(*texts: str, **more: Any) -> Project:
    hooks = [{"sql": text, "transaction": True} for text in texts]
    return side(customers(config={"materialized": "table", "post-hook": hooks}), **more)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("create table public_leak as select email from s.stg", True),
        ("copy {{ this }} to 's3://elsewhere'", True),
        ("grant select on {{ this }} to reporter", False),
        ("comment on table {{ this }} is 'x'", False),
        ("-- create it later\nanalyze {{ this }}", False),
        ("insert into {{ this }} select id, name, city from s.stg where id is null", False),
        ("insert into elsewhere select * from {{ this }}", True),
        ("{{ archive(this) }}", True),
        ("{{ say(this) }}", False),
        ("{{ deeper(this) }}", True),
        ("{{ 'cre' ~ 'ate' }} table x as select 1", True),
        ('select 1 as "/*"; create table x as select 1; select 1 as "*/"', True),
        ("/* create it later */ analyze {{ this }}", False),
        ("{% do run_query('create table x as select 1') %}", True),
        ("{% do run_query('select 1') %}", False),
        ("{{ asked() }}", False),
    ],
)
def test_a_hook_that_may_take_data_away_is_said(text: str, said: bool) -> None:
    macros = [
        macro("macro.p.archive", "{% macro archive(t) %}create table x as select 1{% endmacro %}"),
        macro("macro.p.say", "{% macro say(t) %}select 1{% endmacro %}"),
        macro("macro.p.deeper", "{% macro deeper(t) %}{{ archive(t) }}{% endmacro %}"),
        macro("macro.p.asked", "{% macro asked() %}{% do run_query('show x') %}{% endmacro %}"),
    ]
    report = judged(hooked(text, macros=macros), side(macros=macros))
    assert (("unjudged_code", "warn", SHOWN, None) in found(report)) == said
    again = judged(hooked(text, macros=macros), hooked(text, macros=macros))
    assert again.decision == "APPROVED"


def test_a_hook_that_stays_may_call_a_macro_that_does_not() -> None:
    def of(text: str) -> Project:
        macros = [macro("macro.p.tidy", f"{{% macro tidy() %}}{text}{{% endmacro %}}")]
        return hooked("{{ tidy() }}", macros=macros)

    said = ("unjudged_code", "warn", SHOWN, None)
    assert said in found(judged(of("create table x as select 1"), of("select 1")))
    assert said not in found(judged(of("analyze x"), of("select 1")))
    assert said not in found(judged(of("create table x"), of("create  table x")))


def test_a_header_is_a_hook() -> None:
    def of(**config: str) -> Project:
        return side(customers(config={"materialized": "table", **config}))

    headed = judged(of(sql_header="create table x as select email from s.stg"), of())
    assert ("unjudged_code", "warn", SHOWN, None) in found(headed)
    assert not any(
        f.rule == "unjudged_code" for f in judged(of(sql_header="set a = 1"), of()).findings
    )


@pytest.mark.parametrize(
    ("jinja", "said"),
    [
        ("{% do run_query('create table x as select email from s.stg') %}", True),
        ("{% do run_query('cre' ~ 'ate table x as select 1') %}", True),
        ("{% set q %} insert into x select 1 {% endset %}{% do run_query(q) %}", True),
        ("{% do run_query(q) %}", True),
        ("{% do run_query('etaerc' | reverse) %}", True),
        ("{% do adapter.execute('copy s.stg to x') %}", True),
        ("{% do adapter['execute']('copy s.stg to x') %}", True),
        ("{% call statement('x') %} create table x as select 1 {% endcall %}", True),
        ("{% call set_sql_header(config) %} create table x as select 1 {% endcall %}", True),
        ("{{ sweep() }}", True),
        ("{{ around() }}", True),
        ("{% set r = run_query('select 1') %}", False),
        (
            "{% set q %} -- all\n select id from {{ ref('stg') }} {% endset %}{% set r = run_query(q) %}",
            False,
        ),
        ("{% set r = run_query('select max(a) from ' ~ ref('stg')) %}", False),
        (
            "{% call statement('x', fetch_result=true) %} with a as (select 1) select 1 {% endcall %}",
            False,
        ),
        ("{{ plain() }}", False),
        ("{% if execute %} {% endif %}", False),
    ],
)
def test_what_jinja_runs_itself_is_said_where_it_may_do_more_than_read(
    jinja: str, said: bool
) -> None:
    macros = [
        macro("macro.p.sweep", "{% macro sweep() %}{% do run_query('call x()') %}{% endmacro %}"),
        macro("macro.p.around", "{% macro around() %}{{ sweep() }}{% endmacro %}"),
        macro("macro.p.plain", "{% macro plain() %}create{% endmacro %}"),
    ]
    head = side(customers(PLAIN, raw=f"{jinja}{PLAIN}"), macros=macros)
    report = judged(head, side(customers(PLAIN, raw=PLAIN), macros=macros))
    assert (("unjudged_code", "warn", SHOWN, None) in found(report)) == said
    assert judged(head, head).decision == "APPROVED"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("create_table_as", True),
        ("default__create_table_as", True),
        ("spark__create_table_as", True),
        ("materialization_table_default", True),
        ("create_table_of_ours", False),
        ("test_unique", False),
    ],
)
def test_a_macro_in_the_place_of_one_of_dbts_is_said(name: str, said: bool) -> None:
    of_dbt = [
        macro("macro.dbt.create_table_as", "{% macro create_table_as() %}{% endmacro %}"),
        macro("macro.dbt.test_unique", "{% test unique() %}{% endtest %}"),
    ]
    own = macro(f"macro.p.{name}", f"{{% macro {name}() %}}select 1{{% endmacro %}}")
    report = judged(side(macros=[*of_dbt, own]), side(macros=of_dbt))
    assert (("unjudged_code", "warn", None, None) in found(report)) == said
    assert judged(side(macros=[*of_dbt, own]), side(macros=[*of_dbt, own])).decision == "APPROVED"


def test_a_relation_that_nothing_declares_is_said() -> None:
    leak = node("model.p.leak", "select email as contact from elsewhere.people")
    said = ("unjudged_code", "warn", "model.p.leak", None)
    assert said in found(judged(side(leak)))
    assert said not in found(judged(side(leak), side(leak)))
    plain = node("model.p.leak", "with elsewhere as (select 1 as a) select a from elsewhere")
    assert said not in found(judged(side(plain)))


@pytest.mark.parametrize(("name", "said"), [("md5", True), ("hide", False)])
def test_a_function_under_the_name_of_one_that_masks_is_said(name: str, said: bool) -> None:
    own = node(f"function.p.{name}", None, raw="x")
    assert (
        ("unjudged_code", "warn", f"function.p.{name}", None) in found(judged(side(own)))
    ) == said
    assert judged(side(own), side(own)).decision == "APPROVED"


# --- tags whose value goes elsewhere ---------------------------------------------------------------

CONSTANTS = "select 'a' as name, 'b@c' as email, 1 as id, 'x' as city"


@pytest.mark.parametrize(
    ("sql", "email"),
    [
        ("select 'a' as name, 'b@c' as email, 1 as id, 'x' as city", False),
        ("select 'b@c' as name, 'a' as email, 1 as id, 'x' as city", True),
    ],
)
def test_a_tag_stays_with_the_value_and_not_with_the_name(sql: str, email: bool) -> None:
    base, head = (
        side(raw({}), replace(stg(text), depends_on=customers().depends_on))
        for text in (CONSTANTS, sql)
    )
    report = judged(head, base)
    assert (("pii_tag_removed", "warn", STG, "name") in found(report)) == email
    assert (("pii_exposed", "block", SHOWN, "name") in found(report)) == email


def test_two_columns_of_a_source_may_not_change_places() -> None:
    swapped = stg("select id, email as name, city, name as email from `s`.`people`")
    assert ("pii_exposed", "block", SHOWN, "name") in found(
        judged(side(raw({}), swapped), side(raw({}), stg()))
    )
    # Also where both come of one column, so that the name already had what it comes of.
    made = "concat(name, city) as {}, name as {}, id, city from `s`.`people`"
    both = [
        stg(f"select {made.format(*names)}") for names in (("email", "name"), ("name", "email"))
    ]
    base, head = (side(raw({}), one) for one in both)
    assert ("pii_exposed", "block", SHOWN, "name") in found(judged(head, base))
    better = stg("select id, name, city, lower(email) as email from `s`.`people`")
    assert judged(side(raw({}), better), side(raw({}), stg())).decision == "APPROVED"


def test_another_name_of_a_model_takes_no_tag_away() -> None:
    seed = replace(stg(CONSTANTS), depends_on=type(stg().depends_on)())
    other = replace(seed, unique_id="model.p.stg2", name="stg2", columns={})
    shown = customers(EXPOSING, "model.p.stg2")
    head = without(side(other, shown), STG)
    assert ("pii_exposed", "block", SHOWN, "email") in found(judged(head, side(seed)))


def test_who_names_relations_otherwise_is_asked_where_they_are() -> None:
    naming = "macro.p.generate_schema_name"
    one, other = (
        [macro(naming, f"{{% macro generate_schema_name(a, b) %}}{name}{{% endmacro %}}")]
        for name in ("a", "b")
    )
    report = judged(side(macros=other), side(macros=one))
    assert found(report) == {("unjudged_code", "warn", None, None)}


def test_for_one_target_all_that_is_elsewhere_has_moved() -> None:
    def elsewhere(made: Node) -> Node:
        return replace(made, schema="x", relation_name=f"`x`.`{made.name}`")

    head = side(elsewhere(stg()), elsewhere(customers("select id, name, city from `x`.`stg`")))
    assert judged(head).decision == "APPROVED"
    both = head.having(same_environment=True), side().having(same_environment=True)
    assert ("column_removed", "block", SHOWN, None) in found(judged(*both))


def test_the_same_words_in_the_file_are_the_same_place() -> None:
    raw_code = "{{ config(schema=target.name ~ '_x') }} select id, name, city from s.stg"
    base, head = (
        side(
            replace(
                customers(raw=raw_code, unrendered={"schema": schema}),
                schema=f"s_{schema}",
                relation_name=f"`s_{schema}`.`customers`",
                config={"materialized": "table", "schema": schema},
            )
        )
        for schema in ("prod_x", "ci_x")
    )
    assert judged(head, base).decision == "APPROVED"
    other = customers(raw=raw_code.replace("_x", "_y"), unrendered={"schema": "ci_y"})
    other = replace(other, config={"materialized": "table", "schema": "ci_y"})
    assert ("column_removed", "block", SHOWN, None) in found(judged(side(other), base))


def test_words_of_the_query_are_no_place() -> None:
    sql = "select id, name, city from `s`.`stg` where alias = 'config(x)' }}"
    report = judged(side(at(customers(sql), alias="elsewhere")), side(customers(sql)))
    assert ("column_removed", "block", SHOWN, None) in found(report)


def test_what_cannot_be_analysed_may_pass_personal_data_on() -> None:
    sql = "select columns('ema.*') from `s`.`stg`"
    private = {"access": None}
    head = side(customers(sql, **private))
    report = judged(head, side(customers(**private)))
    assert ("pii_exposed", "warn", SHOWN, None) in found(report)
    assert judged(head, head).decision == "APPROVED"
    untagged = [raw({}), stg(kinds={})]
    report = judged(
        side(*untagged, customers(sql, **private)), side(*untagged, customers(**private))
    )
    assert "pii_exposed" not in {f.rule for f in report.findings}


def test_a_public_consumer_that_says_it_reads_less() -> None:
    def board(*columns: str) -> Node:
        meta = {"public": True, "referenced_columns": [*columns]} if columns else {"public": True}
        return node("exposure.p.board", None, SHOWN, meta=meta)

    for before, after, said in (
        (board(), board("id"), True),
        (board("id", "name"), board("id"), True),
        (board("id"), board("id", "name"), False),
        (board("id"), board(), False),
    ):
        report = judged(side(after), side(before))
        assert (("pii_tag_removed", "warn", "exposure.p.board", None) in found(report)) == said
