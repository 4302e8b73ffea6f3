"""Made-up dbt packages with as many macros, and as hard to read, as those that shops install.

Guaranteed: the same arguments make the same text; dbt parses and runs it; nothing of it is copied
from a package. Two kinds, after the two ways in which packages of this size work:

* an *observer* has its hooks in its own dbt_project.yml, walks over `graph` and `results` in them,
  and writes what it finds to tables of its own, by names that it puts together from its settings;
* an *uploader* has a macro that the project calls in its own ``on-run-end``, with `results`.

Most macros of both do nothing in a run: dispatched helpers for SQL of five engines, settings,
queries, tests. That is what makes reading them long.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

TABLES: Final = tuple(
    "models tests sources seeds snapshots exposures metrics columns groups".split()
)
"""What a package writes to: a table of its own for each."""
COLUMNS: Final = tuple(
    "unique_id name alias checksum materialized tags owner parents path generated_at invocation_id".split()
)
"""The columns of each of these tables, in the order in which `flat_*` lists their values."""

_WORDS: Final = (
    "anomaly freshness volume schema baseline threshold bucket window score alert owner metric "
    "dimension sample monitor segment period training seasonality range percent change status run"
).split()
_ENGINES: Final = ("bigquery", "databricks", "postgres", "redshift", "snowflake")


class Macro(NamedTuple):
    """A macro: its name, its whole text, and the names of the macros of its package that it calls."""

    name: str
    sql: str
    calls: tuple[str, ...]


_CORE: Final = """
{% macro type_text() -%}
    {{ return(adapter.dispatch('type_text', '$package')()) }}
{%- endmacro %}
{% macro default__type_text() -%}{{ return(api.Column.translate_type('string')) }}{%- endmacro %}
{% macro setting(name, default=none) -%}
    {# A setting is a var of the project, one of the package, or the default. #}
    {%- set given = var('$package', {}) -%}
    {{ return(var('$package' ~ '_' ~ name, given.get(name, default))) }}
{%- endmacro %}
{% macro own_relation(table) -%}
    {%- set schema = target.schema ~ '_' ~ $package.setting('schema_suffix', '$package') -%}
    {{ return(adapter.get_relation(target.database, schema, '$package' ~ '_' ~ table)) }}
{%- endmacro %}
{% macro quoted(value) -%}
    {%- if value is none -%} null
    {%- elif value is number -%} {{ value }}
    {%- else -%} '{{ value | string | replace("'", "''") | truncate(4000, true, '') }}'
    {%- endif -%}
{%- endmacro %}
{% macro insert_rows(relation, rows, should_commit=false) -%}
    {% if relation is none or not rows %}{{ return('') }}{% endif %}
    {% set size = $package.setting('insert_rows_size', 500) | int %}
    {% for start in range(0, rows | length, size) %}
        {% set query %}
            insert into {{ relation }} values
            {% for row in rows[start:start + size] -%}
                ({% for value in row %}{{ $package.quoted(value) }}{{ ', ' if not loop.last }}{% endfor %})
                {{- ', ' if not loop.last }}
            {%- endfor %}
        {% endset %}
        {% do run_query(query) %}
    {% endfor %}
    {% if should_commit %}{% do adapter.commit() %}{% endif %}
{%- endmacro %}
{% macro upload_results(results) -%}
    {% set rows = [] %}
    {% for result in results if execute %}
        {% set flat = $package.flat_models(result.node.to_dict(omit_none=true)) %}
        {% do flat.update({'alias': result.status | string, "path": result.message | string}) %}
        {% do rows.append(flat.values() | list) %}
    {% endfor %}
    {% do $package.insert_rows($package.own_relation('results'), rows, should_commit=true) %}
{%- endmacro %}
{% macro load_seed(folder, file) -%}
    {# Big seeds lie in a bucket: the file in git has their header only. #}
    {{ return(adapter.dispatch('load_seed', '$package')(folder, file)) }}
{%- endmacro %}
{% macro default__load_seed(folder, file) -%}
    {%- set bucket = $package.setting('bucket') -%}
    {%- if execute and bucket is not none -%}
        copy into {{ this }} from '{{ bucket ~ "/" ~ folder ~ '/' ~ file }}'
    {%- endif -%}
{%- endmacro %}
{% macro duckdb__load_seed(folder, file) -%}
    {%- set bucket = $package.setting("bucket") -%}
    {%- if bucket %}insert into {{ this }} select * from read_csv('{{ bucket }}/{{ folder }}/{{ file }}'){% endif -%}
{%- endmacro %}
{% macro upload_all(results) -%}
    {% if execute and $package.setting('enabled', true) %}
        {% for table, upload in $uploads.items() %}
            {% do log('$package: ' ~ table, info=$package.setting('loud', false)) %}
            {% do upload($package.own_relation(table)) %}
        {% endfor %}
        {% do $package.upload_results(results) %}
    {% endif %}
{%- endmacro %}
{% macro on_run_start() -%}
    {% if execute and flags.WHICH in ['run', 'build', 'test'] %}
        {% do $package.setting('started', run_started_at.strftime('%Y-%m-%d %H:%M:%S')) %}
    {% endif %}
{%- endmacro %}
{% macro on_run_end() -%}
    {% if not $package.setting('enabled', true) %}{{ return('') }}{% endif %}
    {% do $package.upload_all(results) %}
{%- endmacro %}
"""

_UPLOAD: Final = """
{% macro upload_$table(relation) -%}
    {% set rows = [] %}
    {% set listed = graph.get('nodes', {}).values() | selectattr('resource_type', '==', '$table'[:-1]) | list %}
    {% for node in listed + (graph.get('$table', {}).values() | list) %}
        {% do rows.append($package.flat_$table(node).values() | list) %}
    {% endfor %}
    {% do $package.insert_rows(relation, rows) %}
{%- endmacro %}
{% macro flat_$table(node) -%}
    {% set config = node.get('config', {}) %}
    {% set most = [$called] | map('int', 0) | max %}
    {% set flat = {
        'unique_id': node.get('unique_id'), 'name': node.get('name'), 'alias': node.get('alias'),
        'checksum': node.get('checksum') | string, 'materialized': config.get('materialized'),
        'tags': config.get('tags', []) | join(','), 'owner': config.get('meta', {}).get('owner'),
        'parents': node.get('depends_on', {}).get('nodes', []) | length,
        'path': node.get('original_file_path', '') | truncate(most, true, '') | replace('\\\\', '/'),
        'generated_at': run_started_at.strftime('%Y-%m-%dT%H:%M:%S'), 'invocation_id': invocation_id,
    } %}
    {{ return(flat) }}
{%- endmacro %}
"""

_FAMILIES: Final = (
    # A helper for SQL, dispatched.
    """
{% macro $name(expression, other=none) -%}
    {{ return(adapter.dispatch('$name', '$package')(expression, other)) }}
{%- endmacro %}
{% macro default__$name(expression, other=none) -%}
    {%- set parts = ["'" ~ ($package.$callee() or '') ~ "'"] -%}
    {%- for part in [expression, other] if part is not none -%}
        {%- do parts.append("coalesce(cast(" ~ part ~ " as " ~ $package.type_text() ~ "), '$word')") -%}
    {%- endfor -%}
    md5({{ parts | join(" || '-' || ") }})
{%- endmacro %}
$variants""",
    # A setting, with what is done where it makes no sense.
    """
{% macro get_$name() -%}
    {% set defaults = {"$word": $number, "$other": '$number', 'list': ["a", 'b', "it's"]} %}
    {% set given = $package.setting("$name", $package.$callee() or defaults["$word"]) %}
    {% if given is string and given | trim | lower in ('', 'none') %}
        {{ return(none) }}
    {% elif given is mapping %}
        {% do defaults.update(given) %}
        {{ return(defaults['$word'] | default($number, true)) }}
    {% endif %}
    {{ return(given) }}
{%- endmacro %}
""",
    # A query over a relation, in CTEs.
    """
{% macro $name(relation, column, where=none, days=$number) -%}
    {#- The $word of each day, and how far it is from the $other before. -#}
    {%- set bucket = dbt.date_trunc('day', column) -%}
    {%- if $package.$callee() == 'week' -%}{%- set bucket = dbt.date_trunc("week", column) -%}{%- endif -%}
    with bucketed as (
        select {{ bucket }} as bucket_start, count(*) as $word,
            sum(case when {{ column }} is null then 1 else 0 end) as {{ "null" ~ '_count' }}
        from {{ relation }}
        {% if where -%} where {{ where }} {%- endif %}
        group by 1
    ), $other as (
        select *, avg($word) over (order by bucket_start rows between {{ days }} preceding and current row)
            as {{ '$other' }}_average
        from bucketed
    )
    select * from $other where $word > {{ $package.setting('$word', $number) }}
{%- endmacro %}
""",
    # An empty table.
    """
{% macro empty_$name() -%}
    {%- set columns = [('$word', 'string'), ('$other', 'numeric'), ('detected_at', 'timestamp')] -%}
    select
    {%- for name, kind in columns %}
        cast(null as {{ api.Column.translate_type(kind) }}) as {{ name }}{% if not loop.last %},{% endif %}
    {%- endfor %}
    where 1 = 0
{%- endmacro %}
""",
    # What a query of the warehouse found, as dictionaries.
    """
{% macro find_$name(table) -%}
    {% if not execute or not $package.$callee() %}{{ return([]) }}{% endif %}
    {% set found = [] %}
    {% call statement('$name', fetch_result=true) -%}
        select $word, $other from {{ $package.own_relation(table) }} where $word is not null
    {%- endcall %}
    {% for row in load_result('$name')['data'] %}
        {% do found.append({'$word': row[0], "$other": row[1]}) %}
    {% endfor %}
    {{ return(found | rejectattr('$word', 'none') | list) }}
{%- endmacro %}
""",
    # A data test.
    """
{% test $name(model, column_name, $word=$number) -%}
    {{ config(fail_calc = 'coalesce(sum($other), 0)', tags=['$package']) }}
    select {{ column_name }}, count(*) as $other
    from {{ model }}
    group by {{ column_name }}
    having count(*) > {{ $word }}
{%- endtest %}
""",
)

_VARIANT: Final = """{% macro ${engine}__$name(expression, other=none) -%}
    to_hex(md5(concat({{ expression }}{% if other is not none %}, '$word', {{ other }}{% endif %})))
{%- endmacro %}
"""

_ONE: Final = re.compile(r"\{% (macro|test) (\w+)\(.*?\{%-? end\1 %\}", re.S)
_CALL: Final = re.compile(r"\b(\w+)\(|dispatch\('(\w+)'")


def macros(package: str, count: int, seed: int = 0) -> list[Macro]:
    """A package's macros: those that its hooks reach, and as many more as it takes.

    Args:
        package: its name.
        count: how many; a few more may be made, since families are not cut.
        seed: another seed is another package.
    """
    rng = random.Random(f"{package}/{seed}")
    uploads = ", ".join(f"'{table}': {package}.upload_{table}" for table in TABLES)
    texts = [Template(_CORE).substitute(package=package, uploads="{" + uploads + "}")]
    getters = ["type_text"]
    made = sum(len(_ONE.findall(text)) for text in (*texts, *[_UPLOAD] * len(TABLES)))
    while made < count:
        word, other = rng.sample(_WORDS, 2)
        fill = {
            "package": package,
            "name": f"{word}_{other}_{made}",
            "word": word,
            "other": other,
            "number": rng.randint(2, 90),
            "callee": rng.choice(getters),
        }
        variants = "".join(
            Template(_VARIANT).substitute(fill, engine=engine)
            for engine in rng.sample(_ENGINES, rng.randint(1, len(_ENGINES)))
        )
        texts.append(Template(rng.choice(_FAMILIES)).substitute(fill, variants=variants))
        found = _ONE.findall(texts[-1])
        made += len(found)
        getters += [name for _, name in found if name.startswith("get_")]
    for table in TABLES:
        called = ", ".join(
            f"{package}.{name}()" for name in rng.sample(getters, min(len(getters), 12))
        )
        texts.append(Template(_UPLOAD).substitute(package=package, table=table, called=called))
    found = [
        (match[2] if match[1] == "macro" else f"test_{match[2]}", match[0])
        for text in texts
        for match in _ONE.finditer(text)
    ]
    names = {name for name, _ in found}
    return [Macro(name, sql, tuple(_called(name, sql, package, names))) for name, sql in found]


def _called(name: str, sql: str, package: str, names: set[str]) -> Iterator[str]:
    """Which macros of the package a text calls, as dbt finds them: a dispatched one by its default."""
    called = {plain or f"default__{dispatched}" for plain, dispatched in _CALL.findall(sql)}
    called |= set(re.findall(rf"\b{package}\.(\w+)", sql))
    return iter(sorted((called & names) - {name}))


def hooks_of(package: str, table: str) -> list[str]:
    """The post-hooks of a table of a package: an observer fills its own as soon as they are there."""
    if package != OBSERVER or table not in TABLES:
        return []
    return [f"{{{{ {package}.upload_{table}(this) }}}}"]


def write(folder: Path, package: str, count: int, seed: int = 0) -> None:
    """Write a package that dbt can install. An observer brings its hooks along."""
    made = macros(package, count, seed)
    project = f"name: {package}\nversion: 1.0.0\nconfig-version: 2\n"
    project += f"models: {{{package}: {{+schema: {package}}}}}\n"
    if package == OBSERVER:
        for when in ("start", "end"):
            project += f'on-run-{when}: ["{{{{ {package}.on_run_{when}() }}}}"]\n'
    for inside in ("macros", "models"):
        (folder / inside).mkdir(parents=True, exist_ok=True)
    (folder / "dbt_project.yml").write_text(project)
    for start in range(0, len(made), 8):
        text = "\n\n".join(macro.sql for macro in made[start : start + 8])
        (folder / "macros" / f"macros_{start:04}.sql").write_text(text + "\n")
    for table in (*TABLES, "results"):
        text = Template(_TABLE).substitute(columns=COLUMNS, hooks=hooks_of(package, table))
        (folder / "models" / f"{package}_{table}.sql").write_text(text)


OBSERVER: Final = "observer"
UPLOADER: Final = "uploader"

_TABLE: Final = """{{ config(materialized='incremental', full_refresh=false, post_hook=$hooks) }}
select
{%- for name in $columns %}
    cast(null as {{ dbt.type_string() }}) as {{ name }}{{ ',' if not loop.last }}
{%- endfor %}
where 1 = 0
"""
