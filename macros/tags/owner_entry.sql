{#- What names the owner: the entry of the group, of the node itself or of its meta, the first that names somebody. -#}
{% macro owner_entry(node, meta) %}
    {%- set group = dbt_ripple.node_group(node) -%}
    {%- for entry in ((group or {}).get('owner'), node.get('owner'), meta.get('owner')) -%}
        {%- if dbt_ripple.tag_person(entry) -%}{%- do return(entry) -%}{%- endif -%}
    {%- endfor -%}
    {%- do return(none) -%}
{% endmacro %}
