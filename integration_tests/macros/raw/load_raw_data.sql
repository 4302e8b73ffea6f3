{#- Creates the raw tables from the files in `data/`, as the shop's loader would, where they are
    not there yet. Runs before `dbt build`, `run`, `test`, `seed`, `snapshot`; never in `parse`,
    `ls`, `compile` and `docs generate`, which need no raw rows. -#}
{% macro load_raw_data() %}
    {% if execute %}
        {% do adapter.dispatch('load_raw_data', 'shop')(target.schema ~ '_raw') %}
    {% endif %}
{% endmacro %}


{% macro spark__load_raw_data(raw_schema) %}
    {% do run_query('create schema if not exists ' ~ raw_schema) %}
    {% set existing = run_query('show tables in ' ~ raw_schema).columns['tableName'].values() %}
    {% set folder = raw_data_folder() %}

    {% for name, table in raw_tables().items() if name not in existing %}
        {#- CSV and JSON readers take an explicit schema only through a view. -#}
        {% do run_query(
            'create or replace temporary view ' ~ name ~ '__file (' ~ table.columns | join(', ')
            ~ ') using ' ~ table.format ~ ' options (path "' ~ folder ~ '/' ~ table.file ~ '"'
            ~ ', header "true", mode "FAILFAST", timestampFormat "' ~ table.timestamp_format ~ '")'
        ) %}
        {% do run_query(
            'create table if not exists ' ~ raw_schema ~ '.' ~ name ~ ' using parquet as select * from '
            ~ name ~ '__file'
        ) %}
        {% do run_query('drop view ' ~ name ~ '__file') %}
        {{ log('loaded ' ~ raw_schema ~ '.' ~ name, info=true) }}
    {% endfor %}
{% endmacro %}


{% macro duckdb__load_raw_data(raw_schema) %}
    {% do run_query('create schema if not exists ' ~ raw_schema) %}
    {% set folder = raw_data_folder() %}

    {% for name, table in raw_tables().items() %}
        {% set columns = [] %}
        {% for column in table.columns %}
            {% set parts = column.split(' ', 1) %}
            {% do columns.append("'" ~ parts[0] ~ "': '" ~ duckdb_type(parts[1]) ~ "'") %}
        {% endfor %}
        {% set reader = 'read_csv' if table.format == 'csv' else 'read_json' %}
        {% do run_query(
            'create table if not exists ' ~ raw_schema ~ '.' ~ name ~ ' as select * from ' ~ reader
            ~ "('" ~ folder ~ '/' ~ table.file ~ "', columns = {" ~ columns | join(', ') ~ '})'
        ) %}
    {% endfor %}
{% endmacro %}


{#- A Spark type as DuckDB spells it; an array may stand around the others, not within. -#}
{% macro duckdb_type(spark_type) %}
    {% set is_array = spark_type.startswith('array<') %}
    {% set element = spark_type[6:-1] if is_array else spark_type %}
    {{ return(element.replace('<', '(').replace('>', ')').replace(': ', ' ') ~ ('[]' if is_array else '')) }}
{% endmacro %}
