"""Edits that only a real dbt can build: of macros, vars, settings, seeds, versions, hooks.

The files of a random project are edited in a copy. dbt compiles head against base's warehouse, as CI
does, and that is what the selector sees; then dbt builds it twice: on top of base's tables with
later data in the sources, and afresh. A test that differs in either way must have been selected.
"""

from __future__ import annotations

import difflib
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from dbt_builds import Folder
from random_project import SCHEMA
from rebuilds import WAYS, compare_rebuilds, rebuild, restore
from world import Outcome, World

from dbt_ripple.artifacts import Node

KINDS: Final = (
    "macro",
    "var",
    "introspective macro",
    "incremental settings",
    "snapshot settings",
    "model version",
    "hook in dbt",
    "project hook",
    "seed's columns",
    "source's table",
    "constraint",
    "index",
    "materialization",
    "meta in a hook",
    "column's meta in a hook",
    "unknown config in a hook",
    "unnamed parent",
    "hook into another",
    "Python model",
    "environment variable",
    "how tables are made",
    "custom materialization",
)
"""Edits that are built by dbt."""

LATER: Final = [
    statement.format(n=number)
    for number in range(5)
    for statement in (
        "update raw.src_{n} set k = k + 1 where id % 3 = 0",
        "delete from raw.src_{n} where id % 7 = 3",
        "insert into raw.src_{n} by name (select * replace (id + 100 as id) from raw.src_{n} where id % 5 = 0)",
    )
]
"""What happens in the sources between two runs."""


class NothingToEditError(Exception):
    """A random project has nothing that a kind of edit is made on."""


class DbtEdits:
    """Edits a random project's files and lets dbt build them.

    Args:
        world: the project, built once.
        folder: where it was built.

    Attributes:
        random: the generator of the next edit's choices.
    """

    def __init__(self, world: World, folder: Folder) -> None:
        self.world, self.random = world, random.Random()
        self.first = world_database(folder)
        self.head = Folder(folder.work / "edited", folder.work / "head", folder.database)
        shutil.copytree(folder.project, self.head.project, dirs_exist_ok=True)
        self.unnamed = self.add_unnamed_reads()
        restore(self.head, self.first)
        self.head.dbt("docs", "generate")
        self.base = self.head.read()
        self.base = self.base.having(
            run_results=[r for r in world.project.run_results if r.unique_id in self.base.nodes]
        )
        for result in self.base.run_results:
            result.invocation_id = self.base.metadata.invocation_id or ""
        self.passed = {r.unique_id for r in self.base.run_results if r.status == "pass"}
        self.rebuilds = {way: rebuild(self.head, self.first, self.base, way, LATER) for way in WAYS}
        self.ways: dict[str, Callable[[], None]] = {
            "macro": self.macro,
            "var": self.var,
            "introspective macro": self.introspective,
            "incremental settings": self.incremental,
            "snapshot settings": self.snapshot,
            "model version": self.version,
            "hook in dbt": self.hook,
            "project hook": self.project_hook,
            "seed's columns": self.seed,
            "source's table": self.source,
            "constraint": self.constraint,
            "index": self.index,
            "materialization": self.materialization,
            "meta in a hook": self.meta,
            "column's meta in a hook": self.column_meta,
            "unknown config in a hook": self.unknown_config,
            "unnamed parent": self.unnamed_parent,
            "hook into another": self.hook_into_another,
            "Python model": self.python_model,
            "environment variable": self.environment_variable,
            "how tables are made": self.table_macro,
            "custom materialization": self.custom_materialization,
        }

    def add_unnamed_reads(self) -> Path:
        """Models that no query names and hooks that write to others; returns the file of what is read."""
        read, other = [
            node
            for node in self.world.project.of_type("model")
            if node.materialized == "table" and node.version is None
        ][:2]
        # Models in a folder of their own, where no other kind of edit looks for a model.
        for name, text in files_beside(read, other).items():
            path = self.head.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self.head.project / f"models/{read.name}.sql"

    # -- builds -----------------------------------------------------------------------------------

    def has(self, kind: str) -> bool:
        """Whether the project has what a kind of edit is made on."""
        return kind != "introspective macro" or bool(self.models("_of(ref("))

    def edit(self, kind: str) -> tuple[Outcome, str] | None:
        """One edit of a kind, built and tested, and its diff; None where it does not compile.

        None, too, where the project has nothing that this kind is made on.
        """
        with self.as_it_was() as before:
            try:
                self.ways[kind]()
            except NothingToEditError:
                return None
            diff = difference(before) or str(self.head.variables or "")
            if not diff:
                return None
            restore(self.head, self.first)
            if not self.head.dbt("compile", check=False):
                return None
            head = self.head.read()
            head = head.having(run_results=[])
            outcome = Outcome(head)
            for way, base in self.rebuilds.items():
                made = rebuild(self.head, self.first, head, way, LATER)
                compare_rebuilds((self.base, head), (base, made), self.passed, outcome)
        return outcome, diff

    @contextmanager
    def as_it_was(self) -> Iterator[dict[Path, str]]:
        """Put every file back afterwards."""
        kept = {
            p: p.read_text(encoding="utf-8") for p in self.head.project.rglob("*") if p.is_file()
        }
        try:
            yield kept
        finally:
            self.head.variables.clear()
            for path, text in kept.items():
                if path.read_text(encoding="utf-8") != text:
                    path.write_text(text, encoding="utf-8")

    # -- edits ------------------------------------------------------------------------------------

    def change(self, path: Path, change: Callable[[str], str]) -> None:
        text = path.read_text(encoding="utf-8")
        path.write_text(change(text), encoding="utf-8")

    def one_of(self, files: Sequence[Path]) -> Path:
        if not files:
            raise NothingToEditError
        return self.random.choice(files)

    def models(self, having: str) -> list[Path]:
        files = sorted((self.head.project / "models").glob("*.sql"))
        return [f for f in files if having in f.read_text(encoding="utf-8")]

    def macro(self) -> None:
        old, new = self.random.choice(
            (
                (
                    "({{ expression }} + {{ var('offset') }})",
                    "({{ expression }} - {{ var('offset') }})",
                ),
                (
                    "({{ expression }} + {{ var('offset') }})",
                    "(2 * {{ expression }} + {{ var('offset') }})",
                ),
                (
                    "coalesce(lower({{ expression }}), 'none')",
                    "coalesce(upper({{ expression }}), 'none')",
                ),
                ("coalesce(lower({{ expression }}), 'none')", "lower({{ expression }})"),
                ("limit 4", "limit 1"),
            )
        )
        self.change(self.head.project / "macros/macros.sql", lambda t: t.replace(old, new))

    def var(self) -> None:
        name, value = self.random.choice(
            (("threshold", 2), ("threshold", 0), ("offset", 5), ("offset", -1))
        )
        self.change(
            self.head.project / "dbt_project.yml",
            lambda t: re.sub(rf"{name}: -?\d+", f"{name}: {value}", t),
        )

    def introspective(self) -> None:
        """What a macro looks at while it compiles is edited; its own text stays."""
        looking = self.one_of(self.models("_of(ref("))
        name = re.findall(r"ref\('(\w+)'\)", looking.read_text(encoding="utf-8"))[0]
        path = self.head.project / f"models/{name}.sql"
        column = self.random.choice(self.world.columns[f"model.lab.{name}"])
        texts = [c.name for c in self.world.columns[f"model.lab.{name}"] if c.type == "VARCHAR"]
        looked = self.random.choice(
            (
                "select *, 1 as one_more",
                f'select * exclude ("{column.name}")',
                f"select * replace (concat({texts[0]}, '!') as {texts[0]})"
                if texts
                else "select 2 as more, *",
            )
        )
        self.change(path, lambda t: wrapped(t, looked))

    def incremental(self) -> None:
        path = self.one_of(self.models("is_incremental()"))
        keys = [c.name for c in self.world.columns[f"model.lab.{path.stem}"]]
        change = self.random.choice(
            (
                lambda t: t.replace(") - 3 from", ") - 1 from"),
                lambda t: t.replace(
                    "{% if is_incremental() %}\nwhere ",
                    "{% if is_incremental() %}\nwhere 1 = 0 and ",
                ),
                lambda t: re.sub(
                    r"unique_key='\w+'", f"unique_key='{self.random.choice(keys)}'", t
                ),
                lambda t: t.replace(
                    "incremental_strategy='delete+insert'", "incremental_strategy='append'"
                ),
            )
        )
        self.change(path, change)

    def snapshot(self) -> None:
        path = self.one_of(sorted((self.head.project / "snapshots").glob("*.sql")))
        change = self.random.choice(
            (
                lambda t: t.replace("unique_key=", "hard_deletes='invalidate', unique_key="),
                lambda t: t.replace("unique_key=", "hard_deletes='new_record', unique_key="),
                lambda t: t.replace("select * from", "select distinct * from").replace(
                    "\n{% endsnapshot", " limit 2\n{% endsnapshot"
                ),
            )
        )
        self.change(path, change)

    def version(self) -> None:
        """The latest version is the first one again, or both say the same."""
        if self.random.random() < 0.5:
            self.change(
                self.head.project / "models/models.yml",
                lambda t: t.replace("latest_version: 2", "latest_version: 1"),
            )
        else:
            path = self.one_of(self.models_named("_v"))
            self.change(path, lambda t: wrapped(t, "select distinct *", "limit 3"))

    def models_named(self, part: str) -> list[Path]:
        return [f for f in sorted((self.head.project / "models").glob("*.sql")) if part in f.stem]

    def hook(self) -> None:
        path = self.one_of(self.models("'table'"))
        name = "model.lab." + re.sub(r"_v(\d)$", r".v\1", path.stem)
        column = self.random.choice(self.world.columns[name]).name
        text = f"delete from {{{{ this }}}} where {column} is null"

        def with_hook(source: str) -> str:
            if "post_hook" in source:
                return re.sub(r", post_hook=\"[^\"]*\"|, post_hook='[^']*'", "", source)
            return source.replace("'table'", f"'table', post_hook=\"{text}\"", 1)

        self.change(path, with_hook)

    def project_hook(self) -> None:
        tables = [f.stem for f in self.models("'table'")]
        text = f"delete from {SCHEMA}.{self.random.choice(tables)}"
        self.change(
            self.head.project / "dbt_project.yml", lambda t: f'{t}\non-run-end:\n  - "{text}"\n'
        )

    def seed(self) -> None:
        path = self.one_of(sorted((self.head.project / "seeds").glob("*.csv")))
        way = self.random.randrange(3)

        def with_column(text: str) -> str:
            lines = text.splitlines()
            if way == 0:
                lines = [line + (",added" if i == 0 else f",{i}") for i, line in enumerate(lines)]
            elif way == 1:
                cells = lines[1].split(",")
                lines[1] = ",".join(["many", *cells[1:]])
            else:
                lines = [",".join(reversed(line.split(","))) for line in lines][:-1]
            return "\n".join(lines) + "\n"

        self.change(path, with_column)

    def source(self) -> None:
        """A source is another table of the warehouse."""
        path = self.head.project / "models/models.yml"
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        tables = document["sources"][0]["tables"]
        one, two = self.random.sample(range(len(tables)), 2)
        tables[one]["identifier"] = tables[two]["name"]
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    # -- properties ---------------------------------------------------------------------------------

    def stored(self, kinds: str) -> Path:
        """A model of one of these materializations, not versioned."""
        files = [f for f in self.models("materialized=") if not re.search(r"_v\d$", f.stem)]
        text = [f for f in files if re.search(rf"'(?:{kinds})'", f.read_text(encoding="utf-8"))]
        return self.one_of(text)

    def said_of(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """What models.yml says of a model."""
        path = self.head.project / "models/models.yml"
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        change(next(m for m in document["models"] if m["name"] == name))
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    def constraint(self) -> None:
        """A contract with a constraint that may hold or not."""
        path = self.stored("table|incremental")
        columns = self.world.columns[f"model.lab.{path.stem}"]
        on = self.random.choice(columns)
        constraint = self.random.choice(
            (
                {"type": "not_null"},
                {"type": "unique"},
                {"type": "primary_key"},
                {"type": "check", "expression": f"{on.name} is not null"},
            )
        )

        def change(model: dict[str, Any]) -> None:
            columns_before = {c["name"]: c for c in model["columns"]}
            model["config"] = {**model.get("config", {}), "contract": {"enforced": True}}
            model["columns"] = [
                {**columns_before.get(c.name, {"name": c.name}), "data_type": c.type}
                for c in columns
            ]
            model["columns"][columns.index(on)]["constraints"] = [constraint]

        self.said_of(path.stem, change)

    def index(self) -> None:
        path = self.stored("table")
        column = self.random.choice(self.world.columns[f"model.lab.{path.stem}"]).name
        unique = self.random.random() < 0.8
        index = f", indexes=[{{'columns': ['{column}'], 'unique': {unique}}}]"
        self.change(path, lambda t: t.replace("'table'", "'table'" + index, 1))

    def materialization(self) -> None:
        """Another one: an updating hook fails on a view, and an ephemeral model has none."""
        hooked = self.models("post_hook")
        path = self.one_of(hooked) if self.random.random() < 0.6 else self.stored("view")
        new = self.random.choice(("table", "view", "ephemeral"))
        self.change(path, lambda t: re.sub(r"'(?:table|view)'", f"'{new}'", t, count=1))

    def meta(self) -> None:
        path = self.head.project / "models/m_by_meta.sql"
        bound = self.random.choice((0, 1, 2, 8, 30))
        self.change(path, lambda t: re.sub(r"'bound': \d+", f"'bound': {bound}", t))

    def unknown_config(self) -> None:
        path = self.head.project / "models/m_by_config.sql"
        bound = self.random.choice((0, 1, 2, 8, 30))
        self.change(path, lambda t: re.sub(r"lab_bound=\d+", f"lab_bound={bound}", t))

    def column_meta(self) -> None:
        bound = self.random.choice((0, 1, 2, 8, 30))

        def change(model: dict[str, Any]) -> None:
            for column in model["columns"]:
                if "config" in column:
                    column["config"]["meta"]["bound"] = bound

        self.said_of("m_by_column", change)

    def unnamed_parent(self) -> None:
        """What is read without being named is edited."""
        select, limit = self.random.choice(
            (
                ("select *", "limit 2"),
                ("select *", "limit 0"),
                ("select *", "order by all limit 5"),
                ("select *, 1 as one_more", ""),
            )
        )
        self.change(self.unnamed, lambda t: wrapped(t, select, limit))

    def hook_into_another(self) -> None:
        """A hook that writes to another model, or makes a macro, or the model it is on."""
        path = self.head.project / "models/unnamed/writes_log.sql"
        change = self.random.choice(
            (
                lambda t: t.replace("select count(*) as n", "select count(*) + 1 as n"),
                lambda t: t.replace("insert into", "-- insert into"),
                lambda t: t.replace("(select count(*)", "(select 1 + count(*)"),
                lambda t: wrapped(t, "select *", "limit 1"),
            )
        )
        self.change(path, change)

    def python_model(self) -> None:
        """A number, an operator, an indentation, a helper, or what the model's config says."""
        old, new = self.random.choice(
            (
                ("BOUND = 3", "BOUND = 1"),
                ("rows + 1", "rows - 1"),
                ("        rows = 0\n", "    rows = 0\n"),
                ("return rows + 1", "return max(rows, 3)"),
                ('"extra": 2', '"extra": 0'),
            )
        )
        self.change(
            self.head.project / "models/unnamed/in_python.py", lambda t: t.replace(old, new)
        )

    def environment_variable(self) -> None:
        """Its value where head is built, or what stands in for one that is not set."""
        bound = self.random.choice(("0", "2", "30"))
        if self.random.random() < 0.5:
            self.head.variables["LAB_BOUND"] = bound
        else:
            path = self.head.project / "macros/environment.sql"
            self.change(path, lambda t: t.replace("'LAB_BOUND', '1'", f"'LAB_BOUND', '{bound}'"))

    def table_macro(self) -> None:
        """The project's own version of a macro of dbt's."""
        body = self.random.choice(
            (
                "select * from ({{ compiled_code }}) limit 3",
                "select * from ({{ compiled_code }}) offset 1",
                "{{ compiled_code }}",
            )
        )
        self.change(self.head.project / "macros/tables.sql", lambda t: MAKES_TABLES.format(body))

    def custom_materialization(self) -> None:
        path = self.head.project / "macros/lab_table.sql"
        old, new = self.random.choice(
            (
                ("limit 5", "limit 2"),
                ("limit 5", "offset 1"),
                ("limit 5", "order by all desc limit 5"),
            )
        )
        self.change(path, lambda t: t.replace(old, new))


# dbt-duckdb passes options by names that its versions differ in: a macro that reads `kwargs` takes any.
MAKES_TABLES: Final = """{{% macro duckdb__create_table_as(temporary, relation, compiled_code, language='sql') %}}
{{%- set options = kwargs %}}
{{%- if language == 'python' %}}{{{{ py_write_table(temporary=temporary, relation=relation, compiled_code=compiled_code) }}}}
{{%- else %}}
create {{% if temporary %}}temporary {{% endif %}}table {{{{ relation.include(database=(not temporary), schema=(not temporary)) }}}} as ({})
{{%- endif %}}
{{% endmacro %}}
"""

MATERIALIZATION: Final = """{% materialization lab_table, adapter='duckdb' %}
{%- set relation = this.incorporate(type='table') %}
{{ run_hooks(pre_hooks) }}
{% call statement('main') %}
create or replace table {{ relation }} as select * from ({{ sql }}) limit 5
{% endcall %}
{{ adapter.commit() }}
{{ return({'relations': [relation]}) }}
{% endmaterialization %}
"""

IN_PYTHON: Final = """BOUND = 3


def counted(rows):
    # one more than there are
    return rows + 1


def model(dbt, session):
    dbt.config(materialized="table", meta={"extra": 2})
    read = dbt.ref("READ")
    rows = len(read.limit(BOUND).fetchall())
    if rows > 2:
        rows += dbt.config.get("meta")["extra"]
        rows = 0
    return session.query(f"select {counted(rows)} as n")
"""


def files_beside(read: Node, other: Node) -> dict[str, str]:
    """What is added to a random project, by path: models that read without SQL that names what they read.

    Each model has a test, which returns its rows.
    """
    models = {f"{name}.sql": text for name, text in unnamed_reads(read, other).items()}
    table = "{{ config(materialized='table') }}\n\n"
    models |= {
        "in_python.py": IN_PYTHON.replace("READ", read.name),
        "by_environment.sql": f"{table}select {{{{ lab_bound() }}}} as n",
        "by_materialization.sql": "{{ config(materialized='lab_table') }}\n\n"
        f"select * from {{{{ ref('{other.name}') }}}}",
    }
    tests = {
        f"tests/of_{name.partition('.')[0]}.sql": f"select * from {{{{ ref('{name.partition('.')[0]}') }}}}"
        for name in models
        if name not in ("hook_log.sql", "writes_log.sql")
    }
    return {
        **{f"models/unnamed/{name}": text for name, text in models.items()},
        **tests,
        "macros/environment.sql": "{% macro lab_bound() %}{{ env_var('LAB_BOUND', '1') }}{% endmacro %}\n",
        "macros/tables.sql": "",
        "macros/lab_table.sql": MATERIALIZATION,
    }


def unnamed_reads(read: Node, other: Node) -> dict[str, str]:
    """Models by name: of reads that SQL does not name, and of a hook that writes elsewhere."""
    name = f"{read.schema}.{read.alias or read.name}"
    table = "{{ config(materialized='table') }}\n\n"
    after = "-- depends_on: {{ ref('writes_log') }}\n" + table
    hooks = [
        "insert into {{ ref('hook_log') }} select count(*) as n from {{ this }}",
        f"create or replace macro {read.schema}.size_of() as "
        f"(select count(*) from {{{{ ref('{read.name}') }}}})",
    ]
    below = f"-- depends_on: {{{{ ref('{read.name}') }}}}\n{table}"
    return {
        "hook_log": table + "select cast(0 as bigint) as n",
        "writes_log": f"{{{{ config(materialized='table', post_hook={hooks!r}) }}}}\n\n"
        f"select * from {{{{ ref('{other.name}') }}}}",
        "reads_log": after + "select n from {{ ref('hook_log') }}",
        "calls_macro": after + f"select {read.schema}.size_of() as n",
        "reads_by_string": f"{below}select * from query('select * from {name}')",
        "reads_by_name": f"{below}select * from query_table('{name}')",
        "reads_columns": f"{below}select column_name from information_schema.columns "
        f"where table_schema = '{read.schema}' and table_name = '{read.alias or read.name}'",
    }


def difference(before: dict[Path, str]) -> str:
    """What was edited in files, line by line."""
    return "\n".join(
        line
        for path, text in before.items()
        for line in difflib.unified_diff(
            text.splitlines(),
            path.read_text(encoding="utf-8").splitlines(),
            path.name,
            n=0,
            lineterm="",
        )
    )


def wrapped(text: str, select: str, end: str = "") -> str:
    """A model's file with its query inside another."""
    head, _, body = text.partition("}}\n\n")
    return f"{head}}}}}\n\n{select} from (\n{body}\n) as edited_whole {end}\n"


def world_database(folder: Folder) -> Path:
    """The warehouse as `worlds.built` keeps it."""
    return folder.work / "base" / folder.database
