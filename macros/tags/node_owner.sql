{% macro node_owner(node, meta) %}
    {%- do return(dbt_ripple.tag_person(dbt_ripple.owner_entry(node, meta))) -%}
{% endmacro %}
