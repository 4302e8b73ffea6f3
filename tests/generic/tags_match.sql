{% test tags_match(model) %}

{%- set drift = dbt_ripple.tag_drift(model) -%}
{%- for name, in_project, in_metastore in drift or [[none, none, none]] %}
select
    {{ dbt_ripple.text_literal(name) }} as tag_name,
    {{ dbt_ripple.text_literal(in_project) }} as in_project,
    {{ dbt_ripple.text_literal(in_metastore) }} as in_metastore
{{ 'where 1 = 0' if not drift }}
{{ 'union all' if not loop.last }}
{%- endfor %}

{% endtest %}
