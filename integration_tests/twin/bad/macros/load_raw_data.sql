{#- Creates the raw tables where they are not there yet, as the loader would. -#}
{% macro load_raw_data() %}
    {% if execute and flags.WHICH in ['build', 'run', 'test'] %}
        {% set schema = target.schema ~ '_raw' %}
        {% set storage = 'using parquet' if target.type == 'spark' else '' %}
        {% do run_query('create schema if not exists ' ~ schema) %}
        {% for name, query in raw_tables().items() %}
            {% do run_query('create table if not exists ' ~ schema ~ '.' ~ name ~ ' ' ~ storage ~ ' as ' ~ query) %}
        {% endfor %}
    {% endif %}
{% endmacro %}
