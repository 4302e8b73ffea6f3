{#- Creates the raw tables where they are not there yet, in place of a loader, which is no part of the
    project: `dbt run-operation load_raw_data`. -#}
{% macro load_raw_data() %}
    {% set schema = target.schema ~ '_raw' %}
    {% set storage = 'using parquet' if target.type == 'spark' else '' %}
    {% do run_query('create schema if not exists ' ~ schema) %}
    {% for name, query in raw_tables().items() %}
        {% do run_query('create table if not exists ' ~ schema ~ '.' ~ name ~ ' ' ~ storage ~ ' as ' ~ query) %}
    {% endfor %}
{% endmacro %}
