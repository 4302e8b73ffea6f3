{% macro bad_keys(keys) %}
{#- One query for all of them: what a query costs here is to plan it. -#}
select
    check_name,
    found
from (
    {{- dbt_ripple.rows_of_keys(keys) | indent(4) }}
) as all_keys
group by check_name, found
having count(*) > 1 or max(lacks_a_part) = 1
{% endmacro %}


{#- The values of keys, as one text each. -#}
{% macro rows_of_keys(keys) %}
{%- for check, (relation, columns) in keys.items() %}
select
    '{{ check }}' as check_name,
    {{ dbt_ripple.in_words(columns) }} as found,
    case when {{ columns | join(' is null or ') }} is null then 1 else 0 end as lacks_a_part
from {{ relation }}
{{ 'union all' if not loop.last }}
{%- endfor %}
{% endmacro %}
