{% macro required_tags() %}
    {%- set said = (var('ripple_rules', none) or {}).get('tags_required') -%}
    {%- for of, tags in (said if said is mapping else {}).items() if of != 'level' -%}
        {%- for tag in ([tags] if tags is string else tags) %}
select
    {{ dbt_ripple.text_literal(of) }} as asked_of,
    {{ dbt_ripple.text_literal(tag) }} as tag
union all
        {%- endfor -%}
    {%- endfor %}
select
    {{ dbt_ripple.text_literal(none) }} as asked_of,
    {{ dbt_ripple.text_literal(none) }} as tag
{% endmacro %}
