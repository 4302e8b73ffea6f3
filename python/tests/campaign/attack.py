"""Hostile and harmless edits of a project, judged by the gate.

    python python/tests/campaign/attack.py FOLDER ... [--hostile 500] [--harmless 200] [--seed 1]

FOLDER holds the artifacts of a project. Some of its models are declared public, columns above them
personal data, and then each edit is laid over the artifacts: a hostile one takes a promised column away
or lets a tagged one out, and tries to hide it (aliases, versions, tags, marks, packages, branches, names,
policies); a harmless one does neither. The rules that only count what is reached are off.

It exits with 1 where a hostile edit is APPROVED, or without a finding about what it did, and where a
harmless one is BLOCKED.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dbt_ripple.artifacts import Column, Macro, Node, Project, read_project
from dbt_ripple.artifacts.project import DependsOn
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import GateReport, gate_from
from dbt_ripple.governance.policy import Policy, base_masks
from dbt_ripple.governance.ripple_yml import Config, Excepted
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.column_edges import value_edges
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.pii import PersonalData
from dbt_ripple.graph.traversal import reach
from dbt_ripple.reasons import Code

QUIET = (
    *("blast_radius", "certified_reached", "duplicate_introduced", "canonical_bypassed"),
    *("owner_missing", "owner_removed", "tier1_key_untested", "source_drift", "column_redefined"),
)
"""Rules that would speak of nearly every edit, and so hide that nothing else does."""
BLOCKS = (
    *("column_removed", "column_renamed", "pii_untagged", "pii_exposed", "reader_broken"),
    "contract_version_without_migration",
)
RULES = Config({**dict.fromkeys(QUIET, "off"), **dict.fromkeys(BLOCKS, "block")})
MASK = "macro.dbt_ripple.mask"
OF_DBT = "macro.dbt.create_table_as"
OF_ONE_WORLD = 4
"""Edits that are tried on the same promises: to analyse them takes as long as an edit."""


@dataclass
class World:
    """A project in which something is promised, and something is personal.

    Attributes:
        shown: a public model, and one of its columns.
        hidden: a model above or beside it, and a column that holds personal data.
        others: all columns of that one, in order.
        analysis: of the project.
    """

    project: Project
    shown: Node
    column: str
    columns: list[str]
    hidden: Node
    secret: str
    others: list[str]
    analysis: Analysis
    policy: Policy = field(default_factory=lambda: Policy(RULES))

    def having(self, *nodes: Node, without: tuple[str, ...] = (), **more: Any) -> Project:
        """The project with other nodes, and the edges that these have."""
        given = {n.unique_id: n for n in nodes}
        every = {**self.project.nodes, **given}
        every = {u: n for u, n in every.items() if u not in without}
        parents = {u: [p for p in n.depends_on.nodes if p in every] for u, n in every.items()}
        children: dict[str, list[str]] = {u: [] for u in every}
        for child, above in parents.items():
            for parent in above:
                children[parent].append(child)
        return self.project.having(nodes=every, parents=parents, children=children, **more)


def worlds(project: Project, dice: random.Random, cache: Cache | None = None) -> Iterator[World]:
    """The same project with other promises, without end."""
    macros = {
        OF_DBT: Macro(unique_id=OF_DBT, name="create_table_as", package_name="dbt"),
        MASK: Macro(
            unique_id=MASK,
            name="mask",
            package_name="dbt_ripple",
            macro_sql="case 'dbt_ripple.mask'",
        ),
    }
    packages = Counter(node.package_name for node in project.of_type("model"))
    own = frozenset({project.name, packages.most_common(1)[0][0]})
    project = project.having(macros={**project.macros, **macros}, catalog={}, local_packages=own)
    analysis = analyse(project, cache=cache)
    models = [
        node
        for node in project.of_type("model")
        if node.package_name in own
        and node.compiled_code
        and (analysed := analysis.nodes[node.unique_id]).status == "analysed"
        and len({*analysed.fingerprints}) > 1
        and node.materialized in ("table", "view")
        and node.version is None
    ]
    while True:
        shown, hidden = dice.sample(models, 2)
        if hidden.unique_id in reach(shown.unique_id, project.children):
            continue
        columns = analysis.nodes[shown.unique_id].columns
        others = analysis.nodes[hidden.unique_id].columns
        # A constant, as a package puts it where a source lacks a column, is nobody's.
        read = {column for _, _, column in value_edges(analysis.edges, {hidden.unique_id})}
        tagged = [name for name in others if name in read]
        if not tagged:
            continue
        secret = dice.choice(tagged)
        named = {**hidden.columns, secret: Column(name=secret, meta={"pii": "email"})}
        hidden = replace(hidden, columns=named)
        shown = replace(shown, access="public", meta={**shown.meta, "public": True}, columns={})
        world = World(
            *(project, shown, dice.choice(columns), columns, hidden, secret, others, analysis)
        )
        world.project = world.having(shown, hidden)
        personal = PersonalData(world.project, analysis).columns
        if not any(pii.unique_id == shown.unique_id for pii in personal):
            world.analysis = analyse(world.project, cache=cache)
            yield world


# --- what is done ----------------------------------------------------------------------------------

Made = tuple[Project, Policy]


def q(name: str) -> str:
    return f'"{name}"' if not name.isidentifier() else name


def select(world: World, columns: list[str], more: str = "") -> Node:
    """The public model with other columns."""
    chosen = ", ".join(f"m.{q(name)}" for name in columns)
    sql = f"select {chosen}{more} from (\n{(world.shown.compiled_code or '').rstrip().rstrip(';')}\n) as m"
    return replace(world.shown, compiled_code=sql, raw_code=sql)


def dropped(world: World) -> Node:
    return select(world, [name for name in world.columns if name != world.column])


def leaking(world: World, expression: str = "max(h.{})", node: Node | None = None) -> Node:
    value = expression.format(q(world.secret))
    more = f", (select {value} from {world.hidden.relation_name} as h) as leaked"
    made = select(world, world.columns, more)
    above = [*made.depends_on.nodes, world.hidden.unique_id]
    return replace(made, depends_on=DependsOn(nodes=above, macros=made.depends_on.macros))


def moved(node: Node, **place: Any) -> Node:
    config, unrendered = {**node.config, **place}, {**node.unrendered_config, **place}
    schema = f"{node.schema}_{place['schema']}" if "schema" in place else node.schema
    alias = place.get("alias", node.alias or node.name)
    database = place.get("database", node.database)
    return replace(
        node,
        config=config,
        unrendered_config=unrendered,
        schema=schema,
        alias=alias,
        database=database,
        relation_name=f'"{database}"."{schema}"."{alias}"',
    )


def untagged(node: Node, secret: str, **meta: Any) -> Node:
    return replace(node, columns={**node.columns, secret: Column(name=secret, meta=meta)})


def appended(text: str) -> Callable[[World], Project]:
    """Jinja, or more, after the text of the model that is shown; it compiles to nothing here."""

    def edited(w: World) -> Project:
        own = text.replace("SECRET", w.secret).replace("HIDDEN", w.hidden.name)
        return w.having(replace(w.shown, raw_code=f"{w.shown.raw_code}\n{own}"))

    return edited


def hostile() -> dict[str, Callable[[World], Made | Project]]:
    def versioned(world: World) -> Project:
        made = dropped(world)
        unique_id = f"{made.unique_id}.v1"
        made = replace(made, unique_id=unique_id, version=1, latest_version=1)
        return world.having(made, without=(world.shown.unique_id,))

    def taken_over(world: World) -> Project:
        thin = replace(
            dropped(world),
            unique_id=f"{world.shown.unique_id}_thin",
            name="thin",
            access=None,
            meta={},
        )
        thin = replace(thin, config={**thin.config, "alias": world.shown.alias})
        return world.having(moved(world.shown, alias=f"{world.shown.name}_old"), thin)

    def renamed_file(world: World) -> Project:
        thin = replace(
            dropped(world), unique_id=f"{world.shown.unique_id}_2", name=f"{world.shown.name}_2"
        )
        thin = replace(thin, config={**thin.config, "alias": world.shown.alias})
        return world.having(thin, without=(world.shown.unique_id,))

    def branch(world: World, more: str) -> Project:
        code = f"{world.shown.raw_code}\n{{% if target.name == 'prod' %}} {more} {{% endif %}}"
        return world.having(replace(world.shown, raw_code=code))

    def marked(world: World) -> Project:
        forged = "max(case 'dbt_ripple.mask' when 'dbt_ripple.mask' then h.{} end)"
        return world.having(leaking(world, forged))

    def marked_beside_a_call(world: World) -> Project:
        forged = "max(case 'dbt_ripple.mask' when 'dbt_ripple.mask' then h.{} end)"
        made = leaking(world, forged)
        code = f"{{{{ dbt_ripple.mask('1') }}}} {made.raw_code}"
        above = DependsOn(nodes=made.depends_on.nodes, macros=[*made.depends_on.macros, MASK])
        return world.having(replace(made, raw_code=code, depends_on=above))

    def of_package(world: World) -> Project:
        made = leaking(world)
        made = replace(
            made, unique_id="model.tools.leak", name="leak", package_name="tools", alias="leak"
        )
        made = replace(made, relation_name='"x"."leak"')
        return world.having(made, local_packages=world.project.local_packages | {"tools"})

    def new_model(world: World) -> Project:
        made = leaking(world)
        unique_id = f"model.{made.package_name}.leak"
        made = replace(
            made, unique_id=unique_id, name="leak", alias="leak", relation_name='"x"."leak"'
        )
        return world.having(made)

    def through_a_hidden_one(world: World) -> Project:
        sql = f"select {q(world.secret)} as harmless from {world.hidden.relation_name}"
        between = replace(
            world.hidden,
            unique_id=f"model.{world.hidden.package_name}.between",
            name="between",
            alias="between",
            relation_name='"x"."between"',
            columns={},
            raw_code=sql,
            compiled_code=sql,
            depends_on=DependsOn(nodes=[world.hidden.unique_id]),
        )
        more = ', (select max(b.harmless) from "x"."between" as b) as leaked'
        made = select(world, world.columns, more)
        above = DependsOn(nodes=[*made.depends_on.nodes, between.unique_id])
        return world.having(between, replace(made, depends_on=above))

    def by_text(world: World) -> Project:
        more = f", (select max({q(world.secret)}) from query_table('h' || 'idden')) as leaked"
        return world.having(select(world, world.columns, more))

    def masked_by_function(world: World) -> Project:
        function = Node(
            unique_id="function.x.hide",
            name="hide",
            resource_type="function",
            package_name=world.project.name,
            meta={"masking": True},
        )
        head = world.having(leaking(world, "max(hide(h.{}))"), function)
        return head.having(masking=base_masks(world.project, head))

    def hooked(world: World) -> Project:
        hook = {
            "sql": f"create table x as select * from {world.hidden.relation_name}",
            "transaction": True,
        }
        return world.having(
            replace(world.shown, config={**world.shown.config, "post-hook": [hook]})
        )

    def under_a_name_that_is_there(world: World) -> Project:
        others = [name for name in world.columns if name != world.column]
        made = leaking(world)
        value = f", (select max(h.{q(world.secret)}) from {world.hidden.relation_name} as h) as {q(world.column)}"
        text = select(world, others, value)
        return world.having(replace(text, depends_on=made.depends_on))

    def chosen_by_pattern(world: World) -> Project:
        sql = f"select columns('.*') from {world.hidden.relation_name}"
        above = DependsOn(nodes=[world.hidden.unique_id])
        return world.having(replace(world.shown, compiled_code=sql, raw_code=sql, depends_on=above))

    def naming(world: World) -> Project:
        unique_id = f"macro.{world.project.name}.generate_alias_name"
        text = "{% macro generate_alias_name(a, b) %}elsewhere{% endmacro %}"
        named = Macro(
            unique_id=unique_id,
            name="generate_alias_name",
            package_name=world.project.name,
            macro_sql=text,
        )
        return world.having(macros={**world.project.macros, unique_id: named})

    def off(world: World) -> Made:
        changes = [Code.POLICY_LEVEL(rule="column_removed", was="block", now="off")]
        return world.having(dropped(world)), Policy(RULES, changes)

    def excepted(world: World) -> Made:
        one = Excepted("pii_exposed", world.shown.unique_id, "fine")
        changes = [Code.POLICY_EXCEPTED(rule=one.rule, unique_id=one.unique_id, reason=one.reason)]
        return world.having(leaking(world)), Policy(RULES, changes)

    def unreadable(world: World) -> Project:
        made = dropped(world)
        text = f"{made.compiled_code} !!! ((("
        return world.having(replace(made, compiled_code=text, raw_code=text))

    def python(world: World) -> Project:
        code = "def model(dbt, session):\n    return session.table('x' + 'y')\n"
        return world.having(
            replace(world.shown, language="python", raw_code=code, compiled_code=None)
        )

    def meta(world: World, **more: Any) -> Node:
        return replace(dropped(world), meta={**world.shown.meta, **more})

    def late(world: World) -> Project:
        gone = Column(name=world.column, meta={"deprecation_date": "2020-01-01"})
        return world.having(replace(dropped(world), columns={world.column: gone}))

    def tag_and(world: World, **of_tag: Any) -> Project:
        return world.having(leaking(world), untagged(world.hidden, world.secret, **of_tag))

    def declassified(world: World) -> Project:
        said = Column(name="leaked", meta={"pii": "none", "pii_reason": "nobody minds"})
        return world.having(replace(leaking(world), columns={"leaked": said}))

    def reading(world: World, sql: str, **more: Any) -> Project:
        """A new public model with this text, which names the hidden one without `ref`."""
        made = replace(
            world.shown,
            unique_id=f"model.{world.shown.package_name}.leak",
            name="leak",
            alias="leak",
            relation_name='"x"."leak"',
            columns={},
            raw_code=sql,
            compiled_code=sql,
            depends_on=DependsOn(nodes=[world.hidden.unique_id]),
            **more,
        )
        return world.having(made)

    def hidden_as(world: World, sql: str, **more: Any) -> Node:
        return replace(world.hidden, raw_code=sql, compiled_code=sql, **more)

    def inner(world: World) -> str:
        return (world.hidden.compiled_code or "").rstrip().rstrip(";")

    def swapped(world: World) -> Project:
        """The tag stays where it is; the values of two columns change places below it."""
        values = dict(
            zip(
                *(world.others, world.analysis.nodes[world.hidden.unique_id].fingerprints),
                strict=True,
            )
        )
        other = next(name for name in world.others if values[name] != values[world.secret])
        names = {world.secret: other, other: world.secret}
        chosen = ", ".join(f"m.{q(names.get(n, n))} as {q(n)}" for n in world.others)
        above = hidden_as(world, f"select {chosen} from (\n{inner(world)}\n) as m")
        more = f", (select max(h.{q(other)}) from {world.hidden.relation_name} as h) as leaked"
        made = select(world, world.columns, more)
        depends_on = DependsOn(nodes=[*made.depends_on.nodes, world.hidden.unique_id])
        return world.having(above, replace(made, depends_on=depends_on))

    def under_another_name(world: World) -> Project:
        """The hidden model gets another name, and no tags."""
        unique_id = f"{world.hidden.unique_id}_2"
        other = replace(
            world.hidden, unique_id=unique_id, name=f"{world.hidden.name}_2", columns={}
        )
        made = leaking(world)
        above = DependsOn(nodes=[*world.shown.depends_on.nodes, unique_id])
        head = world.having(other, replace(made, depends_on=above))
        return World.having(replaced(world, head), without=(world.hidden.unique_id,))

    def replaced(world: World, head: Project) -> World:
        return World(
            *(head, world.shown, world.column, world.columns, world.hidden, world.secret),
            *(world.others, world.analysis),
        )

    def by_a_source(world: World) -> Project:
        source = Node(
            unique_id=f"source.{world.project.name}.x.plain",
            name="plain",
            resource_type="source",
            package_name=world.project.name,
            identifier=world.hidden.alias,
            schema=world.hidden.schema,
            database=world.hidden.database,
            relation_name=world.hidden.relation_name,
        )
        made = leaking(world)
        above = DependsOn(nodes=[*world.shown.depends_on.nodes, source.unique_id])
        return world.having(source, replace(made, depends_on=above))

    def without_ref(world: World) -> Project:
        return world.having(replace(leaking(world), depends_on=world.shown.depends_on))

    def by_its_bare_name(world: World) -> Project:
        name = world.hidden.alias or world.hidden.name
        more = f", (select max(h.{q(world.secret)}) from {name} as h) as leaked"
        return world.having(select(world, world.columns, more))

    def through_python(world: World) -> Project:
        code = f"def model(dbt, session):\n    return dbt.ref('{world.hidden.name}')\n"
        between = replace(
            world.hidden,
            unique_id=f"model.{world.hidden.package_name}.between",
            name="between",
            alias="between",
            relation_name='"x"."between"',
            columns={},
            language="python",
            raw_code=code,
            compiled_code=None,
            depends_on=DependsOn(nodes=[world.hidden.unique_id]),
        )
        more = ', (select max(b.anything) from "x"."between" as b) as leaked'
        made = select(world, world.columns, more)
        above = DependsOn(nodes=[*made.depends_on.nodes, between.unique_id])
        return world.having(between, replace(made, depends_on=above))

    def into_a_snapshot(world: World) -> Project:
        unique_id = f"snapshot.{world.shown.package_name}.leak"
        sql = f"select * from {world.hidden.relation_name}"
        made = replace(
            world.shown,
            unique_id=unique_id,
            resource_type="snapshot",
            name="leak",
            alias="leak",
            relation_name='"x"."leak"',
            config={"materialized": "snapshot", "strategy": "check", "check_cols": "all"},
            raw_code=sql,
            compiled_code=sql,
            depends_on=DependsOn(nodes=[world.hidden.unique_id]),
        )
        return world.having(made)

    def consumer(world: World) -> Project:
        made = Node(
            unique_id=f"exposure.{world.project.name}.board",
            name="board",
            resource_type="exposure",
            package_name=world.project.name,
            meta={"public": True},
            depends_on=DependsOn(nodes=[world.hidden.unique_id]),
        )
        return world.having(made)

    def own_function(world: World) -> Project:
        function = Node(
            unique_id=f"function.{world.project.name}.md5",
            name="md5",
            resource_type="function",
            package_name=world.project.name,
        )
        made = leaking(world, "max(md5(cast(h.{} as varchar)))")
        above = DependsOn(nodes=[*made.depends_on.nodes, function.unique_id])
        return world.having(function, replace(made, depends_on=above))

    def copying(world: World) -> str:
        return f"create table public_copy as select * from {world.hidden.relation_name}"

    def with_config(world: World, **config: Any) -> Project:
        return world.having(replace(world.shown, config={**world.shown.config, **config}))

    def macro(world: World, name: str, text: str, package: str | None = None) -> Macro:
        package = package or world.project.name
        return Macro(
            unique_id=f"macro.{package}.{name}",
            name=name,
            package_name=package,
            macro_sql=f"{{% macro {name}() %}}{text}{{% endmacro %}}",
        )

    def having_macros(world: World, *nodes: Node, macros: tuple[Macro, ...]) -> Project:
        named = {made.unique_id: made for made in macros}
        return world.having(*nodes, macros={**world.project.macros, **named})

    def by_macros_of_a_hook(world: World) -> Project:
        hook = {"sql": "{{ tidy() }}", "transaction": True}
        node = replace(world.shown, config={**world.shown.config, "post-hook": [hook]})
        macros = (macro(world, "tidy", "{{ sweep() }}"), macro(world, "sweep", copying(world)))
        return having_macros(world, node, macros=macros)

    def builder(world: World) -> Project:
        kind = world.shown.materialized
        adapter = world.project.metadata.adapter_type
        return having_macros(
            world, macros=(macro(world, f"materialization_{kind}_{adapter}", copying(world)),)
        )

    def printed(text: str) -> Callable[[World], Project]:
        return appended(f"-- \n, {text}")

    def branching(condition: str) -> Callable[[World], Project]:
        return appended(f"{{% if {condition} %}} x {{% endif %}}")

    def stacked(world: World) -> Project:
        made = select(world, world.columns)
        others = ", ".join("null" for _ in world.columns[1:])
        value = ", ".join(filter(None, (f"cast(h.{q(world.secret)} as varchar)", others)))
        first, *rest = world.columns
        sql = ", ".join(
            [f"cast(m.{q(first)} as varchar) as {q(first)}", *(f"m.{q(c)}" for c in rest)]
        )
        text = f"select {sql} from ({made.compiled_code}) as m union all select {value} from {world.hidden.relation_name} as h"
        above = DependsOn(nodes=[*made.depends_on.nodes, world.hidden.unique_id])
        return world.having(replace(made, raw_code=text, compiled_code=text, depends_on=above))

    def position(world: World) -> int:
        return world.others.index(world.secret) + 1

    return {
        "drop": lambda w: w.having(dropped(w)),
        "drop by rename": lambda w: w.having(
            select(w, [c for c in w.columns if c != w.column], f", m.{q(w.column)} as other_name")
        ),
        "drop, not public any more": lambda w: w.having(
            replace(dropped(w), access="private", meta={})
        ),
        "drop, versions": versioned,
        "drop, first version": lambda w: w.having(meta(w, contract_version="2")),
        "drop, deprecated in the change": late,
        "drop, model deprecated": lambda w: w.having(
            replace(dropped(w), deprecation_date="2020-01-01")
        ),
        "drop, rule off": off,
        "drop, other file": renamed_file,
        "drop, unreadable": unreadable,
        "gone": lambda w: w.having(without=(w.shown.unique_id,)),
        "gone, disabled": lambda w: w.having(
            without=(w.shown.unique_id,), disabled=[*w.project.disabled, w.shown.unique_id]
        ),
        "alias": lambda w: w.having(moved(w.shown, alias="elsewhere")),
        "schema": lambda w: w.having(moved(w.shown, schema="elsewhere")),
        "database": lambda w: w.having(moved(w.shown, database="elsewhere")),
        "ephemeral": lambda w: w.having(
            replace(
                w.shown, config={**w.shown.config, "materialized": "ephemeral"}, relation_name=None
            )
        ),
        "taken over": taken_over,
        "python": python,
        "branch, drop": lambda w: branch(w, "where false"),
        "leak": lambda w: w.having(leaking(w)),
        "leak, worked on": lambda w: w.having(
            leaking(w, "max(upper(trim(cast(h.{} as varchar))))")
        ),
        "leak, by case": lambda w: w.having(leaking(w, "max(case when 1 = 1 then h.{} end)")),
        "leak, tag gone": tag_and,
        "leak, tag none": lambda w: tag_and(w, pii="none", pii_reason="nobody minds"),
        "leak, tag false": lambda w: tag_and(w, pii=False),
        "leak, not public any more": lambda w: w.having(replace(leaking(w), meta={})),
        "leak, declassified": declassified,
        "leak, forged mark": marked,
        "leak, forged mark beside a call": marked_beside_a_call,
        "leak, package": of_package,
        "leak, new model": new_model,
        "leak, through another": through_a_hidden_one,
        "leak, by text": by_text,
        "leak, masking function": masked_by_function,
        "leak, exception": excepted,
        "leak, by hook": hooked,
        "leak, under a name that is there": under_a_name_that_is_there,
        "leak, chosen by pattern": chosen_by_pattern,
        "leak, function of a schema": lambda w: w.having(leaking(w, "max(tools.md5(h.{}))")),
        "leak, in a struct": lambda w: w.having(leaking(w, "max(struct_pack(a := h.{}))")),
        "leak, listed": lambda w: w.having(leaking(w, "string_agg(cast(h.{} as varchar), ',')")),
        "leak, beside its hash": lambda w: w.having(leaking(w, "max(concat(md5(h.{0}), h.{0}))")),
        "leak, last of a window": lambda w: w.having(
            leaking(w, "max(h.{0}) filter (where h.{0} <> '')")
        ),
        "leak, columns swapped": swapped,
        "leak, under another name": under_another_name,
        "leak, by a source": by_a_source,
        "leak, without ref": without_ref,
        "leak, by its bare name": by_its_bare_name,
        "leak, through python": through_python,
        "leak, into a snapshot": into_a_snapshot,
        "leak, to a consumer": consumer,
        "leak, hidden made public": lambda w: w.having(
            replace(w.hidden, meta={**w.hidden.meta, "public": True})
        ),
        "leak, by a function called md5": own_function,
        "leak, star": lambda w: reading(w, f"select * from {w.hidden.relation_name}"),
        "leak, star renamed": lambda w: reading(
            w,
            f"select * rename ({q(w.secret)} as plain) from {w.hidden.relation_name}",
        ),
        "leak, renamed by position": lambda w: reading(
            w,
            f"select c{position(w)} as plain from {w.hidden.relation_name} as h"
            f"({', '.join(f'c{i + 1}' for i in range(len(w.others)))})",
        ),
        "leak, by position": lambda w: reading(
            w,
            f"select {'$' if w.project.metadata.adapter_type == 'snowflake' else '#'}{position(w)}"
            f" as plain from {w.hidden.relation_name}",
        ),
        "leak, whole row": lambda w: reading(
            w, f"select to_json(h) as plain from {w.hidden.relation_name} as h"
        ),
        "leak, whole row as an object": lambda w: reading(
            w, f"select object_construct(*) as plain from {w.hidden.relation_name}"
        ),
        "leak, row itself": lambda w: reading(w, f"select h from {w.hidden.relation_name} as h"),
        "leak, summarized": lambda w: reading(
            w, f"select * from (summarize {w.hidden.relation_name})"
        ),
        "leak, unpivoted": lambda w: reading(
            w, f"select v from {w.hidden.relation_name} unpivot (v for k in ({q(w.secret)}))"
        ),
        "leak, stacked": stacked,
        "leak, most frequent": lambda w: w.having(leaking(w, "mode(h.{})")),
        "leak, backwards": lambda w: w.having(leaking(w, "max(reverse(cast(h.{} as varchar)))")),
        "leak, in another alphabet": lambda w: w.having(
            leaking(w, "max(to_base64(encode(cast(h.{} as varchar))))")
        ),
        "leak, instead of its hash": lambda w: w.having(
            leaking(
                w,
                "max(replace(md5(cast(h.{0} as varchar)), md5(cast(h.{0} as varchar)), cast(h.{0} as varchar)))",
            )
        ),
        "leak, too deep to read": lambda w: w.having(
            leaking(w, f"max({'(' * 3000}h.{{}}{')' * 3000})")
        ),
        "leak, second statement": lambda w: reading(
            w, f"select 1 as id; create table y as select * from {w.hidden.relation_name}"
        ),
        "leak, behind a name in quotes": lambda w: reading(
            w, """select 1 as "it's", (select max(x) from query('select ' || 'x')) as plain"""
        ),
        "leak, by a header": lambda w: with_config(w, sql_header=copying(w)),
        "leak, by a hook between names in quotes": lambda w: with_config(
            w,
            **{
                "post-hook": [
                    {
                        "sql": f'select 1 as "/*"; {copying(w)}; select 1 as "*/"',
                        "transaction": True,
                    }
                ]
            },
        ),
        "leak, by macros of a hook": by_macros_of_a_hook,
        "leak, by what a hook joins": lambda w: with_config(
            w,
            **{
                "post-hook": [{"sql": "{{ 'cre' ~ 'ate table x as from y' }}", "transaction": True}]
            },
        ),
        "leak, by a materialization": builder,
        "leak, by one of dbt's macros": lambda w: having_macros(
            w, macros=(macro(w, "create_table_as", copying(w)),)
        ),
        "leak, by a query of Jinja": lambda w: appended(
            f"{{% do run_query('{copying(w)}') %}}".replace('"', "")
        )(w),
        "leak, by a statement of Jinja": lambda w: appended(
            f"{{% call statement('x') %}}{copying(w)}{{% endcall %}}"
        )(w),
        "leak, by the adapter": lambda w: appended(
            f"{{% do adapter.execute('{copying(w)}') %}}".replace('"', "")
        )(w),
        "leak, by a macro of Jinja": lambda w: having_macros(
            w,
            replace(
                w.shown,
                raw_code=f"{{% do sweep() %}}\n{w.shown.raw_code}",
                depends_on=DependsOn(
                    nodes=w.shown.depends_on.nodes, macros=[f"macro.{w.project.name}.sweep"]
                ),
            ),
            macros=(macro(w, "sweep", f"{{% do run_query('{copying(w)}') %}}".replace('"', "")),),
        ),
        "alias, by macro": naming,
        "alias, by macro of an adapter": lambda w: having_macros(
            w, macros=(macro(w, "default__generate_alias_name", "elsewhere"),)
        ),
        "branch, by the place": branching("this.schema == 'prod'"),
        "branch, by the place of another": branching("ref('HIDDEN').database == 'prod'"),
        "branch, by schema": branching("schema == 'prod'"),
        "branch, by what is there": branching("adapter.get_relation('prod', 's', 't')"),
        "branch, by a builtin": branching("builtins.var('x', '')"),
        "branch, by what is selected": branching("selected_resources | length > 9"),
        "branch, by the second run": branching("is_incremental()"),
        "branch, by replacing": printed(
            "{{ target.name.replace('dev', 'id').replace('prod', 'SECRET') }}"
        ),
        "branch, by printing": printed("{{ target.name }}"),
        "branch, leak": lambda w: branch(w, f", {q(w.secret)}"),
    }


def harmless() -> dict[str, Callable[[World], Made | Project]]:
    def edited(world: World, text: str) -> Project:
        return world.having(replace(world.shown, compiled_code=text, raw_code=text))

    def new_model(world: World) -> Project:
        sql = f"select {q(world.column)} from {world.shown.relation_name}"
        made = replace(
            world.shown,
            unique_id=f"model.{world.shown.package_name}.newer",
            name="newer",
            alias="newer",
            relation_name='"x"."newer"',
            raw_code=sql,
            compiled_code=sql,
            access=None,
            meta={},
            depends_on=DependsOn(nodes=[world.shown.unique_id]),
        )
        return world.having(made)

    def alias(world: World) -> Project:
        name = world.shown.alias or world.shown.name
        config = {**world.shown.config, "alias": name}
        return world.having(replace(world.shown, config=config, unrendered_config={"alias": name}))

    def target(world: World) -> Project:
        nodes = [
            replace(
                n,
                schema=f"ci_{n.schema}",
                relation_name=(n.relation_name or "").replace(f'"{n.schema}"', f'"ci_{n.schema}"')
                or None,
            )
            for n in world.project.of_type("model", "seed", "snapshot")
        ]
        names = {world.project.nodes[n.unique_id].relation_name: n.relation_name for n in nodes}
        every = [*nodes, *world.project.of_type("test")]
        texts = []
        for n in every:
            text = n.compiled_code
            for was, now in names.items():
                if text and was and now:
                    text = text.replace(was, now)
            texts.append(replace(n, compiled_code=text))
        return world.having(*texts)

    def hooked(text: str) -> Callable[[World], Project]:
        hook = {"sql": text, "transaction": True}
        return lambda w: w.having(replace(w.shown, config={**w.shown.config, "post-hook": [hook]}))

    def another_value(world: World) -> Project:
        """What is tagged is computed in another way, and stays tagged."""
        others = ", ".join(f"m.{q(n)}" for n in world.others if n != world.secret)
        secret = f"coalesce(m.{q(world.secret)}, m.{q(world.secret)}, null) as {q(world.secret)}"
        inner = (world.hidden.compiled_code or "").rstrip().rstrip(";")
        text = f"select {', '.join(filter(None, (others, secret)))} from (\n{inner}\n) as m"
        return world.having(replace(world.hidden, compiled_code=text, raw_code=text))

    def own_macro(world: World) -> Project:
        unique_id = f"macro.{world.project.name}.cents"
        text = "{% macro cents(a) %}{{ a }} / 100{% endmacro %}"
        made = Macro(
            unique_id=unique_id, name="cents", package_name=world.project.name, macro_sql=text
        )
        return world.having(macros={**world.project.macros, unique_id: made})

    def consumer(world: World) -> Project:
        made = Node(
            unique_id=f"exposure.{world.project.name}.board",
            name="board",
            resource_type="exposure",
            package_name=world.project.name,
            meta={"public": True},
            depends_on=DependsOn(nodes=[world.shown.unique_id]),
        )
        return world.having(made)

    sql = lambda world: (world.shown.compiled_code or "").rstrip().rstrip(";")  # noqa: E731
    return {
        "nothing": lambda w: w.project,
        "description": lambda w: w.having(replace(w.shown, description="other words")),
        "comment": lambda w: edited(w, f"-- a word\n{sql(w)}\n/* another */\n"),
        "wrapped": lambda w: edited(w, f"with m as (\n{sql(w)}\n) select * from m"),
        "a column more": lambda w: w.having(select(w, w.columns, ", 1 as one_more")),
        "other order": lambda w: w.having(select(w, w.columns[::-1])),
        "a new model": new_model,
        "a tag more": lambda w: w.having(
            replace(
                w.shown, columns={w.column: Column(name=w.column, meta={"pii": "name"})}, meta={}
            )
        ),
        "an owner": lambda w: w.having(replace(w.shown, meta={**w.shown.meta, "owner": "Ada"})),
        "a first version": lambda w: w.having(
            replace(w.shown, meta={**w.shown.meta, "contract_version": "1"})
        ),
        "a contract": lambda w: w.having(
            replace(w.shown, config={**w.shown.config, "contract": {"enforced": True}})
        ),
        "its alias written down": alias,
        "another target": target,
        "a view": lambda w: w.having(
            replace(w.shown, config={**w.shown.config, "materialized": "view"})
        ),
        "masked by a call": lambda w: w.having(
            replace(
                leaking(w, "max(case 'dbt_ripple.mask' when 'dbt_ripple.mask' then h.{} end)"),
                raw_code="select *, {{ dbt_ripple.mask('x') }}",
                depends_on=DependsOn(
                    nodes=[*w.shown.depends_on.nodes, w.hidden.unique_id], macros=[MASK]
                ),
            )
        ),
        "hashed": lambda w: w.having(leaking(w, "max(md5(cast(h.{} as varchar)))")),
        "a filter of later runs": appended(
            "{% if is_incremental() %} where a > (select max(a) from {{ this }}) {% endif %}"
        ),
        "the schema of the target": appended("-- from {{ target.schema }}.t"),
        "a var": appended('-- \'{{ var("since", "2020-01-01") }}\''),
        "a query that reads": appended("{% set r = run_query('select 1') %}"),
        "a list of relations": appended(
            "{% for one in [this] %}{% if not loop.last %},{% endif %}{% endfor %}"
        ),
        "a hook that grants": hooked("grant select on {{ this }} to reporter"),
        "a hook that adds rows": hooked("insert into {{ this }} select 1"),
        "a macro": own_macro,
        "a consumer": consumer,
        "tagged, in other words": lambda w: w.having(
            untagged(w.hidden, w.secret, pii="address", why="letters")
        ),
        "tagged, another value": another_value,
        "counted": lambda w: w.having(leaking(w, "count(h.{})")),
    }


# --- how it is judged ------------------------------------------------------------------------------


def judge(world: World, made: Made | Project, cache: Cache | None) -> GateReport:
    head, policy = made if isinstance(made, tuple) else (made, world.policy)
    base = world.project.having(local_packages=head.local_packages)
    return gate_from(compare(base, head, base_analysis=world.analysis, cache=cache), policy)


def is_told(world: World, report: GateReport) -> bool:
    """Whether the answer is not APPROVED because of what was done."""
    about = {world.shown.unique_id, world.hidden.unique_id, "model.tools.leak", None}
    about |= {f"{world.shown.unique_id}.v1", f"exposure.{world.project.name}.board"}
    about |= {f"{kind}.{world.shown.package_name}.leak" for kind in ("model", "snapshot")}
    about |= {f"function.{world.project.name}.md5"}
    return report.decision != "APPROVED" and any(
        finding.level in ("warn", "block") and finding.unique_id in about
        for finding in report.findings
    )


def attack(
    project: Project,
    number: int,
    kinds: dict[str, Callable[[World], Made | Project]],
    seed: int,
    cache: Cache | None,
) -> Iterator[tuple[str, World, GateReport]]:
    """So many edits of a project, each kind in turn; a few of the same world."""
    every = worlds(project, random.Random(seed), cache)
    names = [*kinds]
    for i in range(number):
        if i % OF_ONE_WORLD == 0:
            world = next(every)
        name = names[i % len(names)]
        yield name, world, judge(world, kinds[name](world), cache)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--hostile", type=int, default=500)
    parser.add_argument("--harmless", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, Cache(Path(folder)) as cache:
        for kinds, of_all in ((hostile(), arguments.hostile), (harmless(), arguments.harmless)):
            is_hostile = "drop" in kinds
            decisions: Counter[tuple[str, str]] = Counter()
            for place in arguments.folders:
                number = of_all // len(arguments.folders)
                for name, world, report in attack(
                    read_project(place), number, kinds, arguments.seed, cache
                ):
                    decisions[name, report.decision] += 1
                    bad = not is_told(world, report) if is_hostile else report.decision == "BLOCKED"
                    if bad:
                        wrong += 1
                        said = [(f.rule, f.unique_id, f.column) for f in report.findings]
                        print(
                            f"WRONG {name}: {report.decision} {world.shown.unique_id}.{world.column} {world.hidden.unique_id}.{world.secret} {said[:5]}",
                            flush=True,
                        )
            for (name, decision), count in sorted(decisions.items()):
                print(f"{name:35} {decision:10} {count}")
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
