{% macro node_group(node) %}
    {%- set found = namespace(group=none) -%}
    {%- set group = node.get('group') or (node.get('config') or {}).get('group') -%}
    {%- if group -%}
        {#- Two packages may have a group of the same name; a node's own package comes first. -#}
        {%- for named in (graph.get('groups') or {}).values() if named.name == group -%}
            {%- if found.group is none or named.package_name == node.package_name -%}
                {%- set found.group = named -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(found.group) -%}
{% endmacro %}
