{% macro is_built_now(unique_id) %}
    {%- do return(dbt_ripple.is_asked_for() or unique_id in dbt_ripple.always_built()) -%}
{% endmacro %}
