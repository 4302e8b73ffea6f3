{% test schema_matches_contract(model, allow_more=false) %}
{#-
    One row for each column that the relation lacks, has with another type than the yml declares, or (unless
    `allow_more`) has and the yml does not declare. A column without `data_type` may have any. The engine says what
    the types are on both sides, so that `int` and `integer` are one.
-#}
{%- set found = dbt_ripple.schema_differences(model, allow_more) -%}
{%- for row in found %}
select
    {{ dbt_ripple.text_literal(row['column_name']) }} as column_name,
    {{ dbt_ripple.text_literal(row['difference']) }} as difference,
    {{ dbt_ripple.text_literal(row['declared_type']) }} as declared_type,
    {{ dbt_ripple.text_literal(row['found_type']) }} as found_type
{{ 'union all' if not loop.last }}
{%- else %}
select *
from {{ model }}
where 1 = 0
{%- endfor %}
{% endtest %}
