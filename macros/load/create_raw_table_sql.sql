{% macro create_raw_table_sql(relation, name) %}
    {{- return(adapter.dispatch('create_raw_table_sql', 'dbt_ripple')(relation, name)) -}}
{% endmacro %}


{% macro default__create_raw_table_sql(relation, name) %}
create table if not exists {{ relation }} (
    {%- for column, type in dbt_ripple.raw_table_columns()[name].items() %}
    {{ adapter.quote(column) }} {{ dbt_ripple.type_of(type) }}{{ ',' if not loop.last }}
    {%- endfor %}
)
{% endmacro %}


{% macro spark__create_raw_table_sql(relation, name) %}
{{ dbt_ripple.default__create_raw_table_sql(relation, name) }}
using {{ dbt_ripple.raw_setting('file_format') }}
{# A load is one partition, so that it can be replaced whole; `snapshots` is the list of them. -#}
{% if name not in ('snapshots', 'run_history') -%}
partitioned by (snapshot_id)
{%- endif %}
{% endmacro %}
