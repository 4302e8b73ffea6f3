{% macro insert_runs_sql(history, results, counts) %}
    {{- return(adapter.dispatch('insert_runs_sql', 'dbt_ripple')(history, results, counts)) -}}
{% endmacro %}


{% macro default__insert_runs_sql(history, results, counts) %}
{%- set columns = dbt_ripple.raw_table_columns()['run_history'] -%}
{%- set recorded_at = modules.datetime.datetime.now(modules.pytz.utc) -%}
insert into {{ history }} (
    {%- for column in columns %}{{ adapter.quote(column) }}{{ ', ' if not loop.last }}{% endfor -%}
)
values
{%- for result in results %}
{%- set row = dbt_ripple.run_row(result, counts, recorded_at) %}
({% for column, type in columns.items() -%}
    {%- if type == 'string' -%}
        {{ dbt_ripple.text_literal(row[column]) }}
    {%- elif type == 'timestamp' -%}
        {{ dbt_ripple.timestamp_literal(row[column]) }}
    {%- elif row[column] is none -%}
        cast(null as {{ dbt_ripple.type_of(type) }})
    {%- else -%}
        cast({{ row[column] }} as {{ dbt_ripple.type_of(type) }})
    {%- endif -%}
    {{ ', ' if not loop.last }}
{%- endfor %}){{ ',' if not loop.last }}
{%- endfor %}
{% endmacro %}
