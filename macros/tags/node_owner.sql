{% macro node_owner(node, meta) %}
    {%- set found = namespace(owner=none) -%}
    {%- set group = node.get('group') or (node.get('config') or {}).get('group') -%}
    {%- if group -%}
        {#- Two packages may have a group of the same name; a node's own package comes first. -#}
        {%- for named in (graph.get('groups') or {}).values() if named.name == group -%}
            {%- if found.owner is none or named.package_name == node.package_name -%}
                {%- set found.owner = named.owner -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(
        dbt_ripple.tag_person(found.owner)
        or dbt_ripple.tag_person(node.get('owner'))
        or dbt_ripple.tag_person(meta.get('owner'))
    ) -%}
{% endmacro %}
