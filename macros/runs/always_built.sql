{% macro always_built() %}
    {#-
        What every run that selects it builds, by unique_id: the models of this package that something outside of it
        reads, the rules that `ripple_rules` names, and all that these read.
    -#}
    {%- set found = [] -%}
    {%- for rule, level in (dbt_ripple.raw_setting('rules') or {}).items() if level and level != 'off' -%}
        {%- if 'model.dbt_ripple.ripple_' ~ rule in graph.nodes -%}{%- do found.append('model.dbt_ripple.ripple_' ~ rule) -%}{%- endif -%}
    {%- endfor -%}
    {%- for node in graph.nodes.values() if node.package_name != 'dbt_ripple' -%}
        {%- for parent in (node.depends_on.nodes or []) if parent.startswith('model.dbt_ripple.') -%}
            {%- if parent not in found -%}{%- do found.append(parent) -%}{%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {#- The list grows while it is walked: what is appended is walked too. -#}
    {%- for unique_id in found -%}
        {%- for parent in graph.nodes[unique_id].depends_on.nodes if parent.startswith('model.dbt_ripple.') -%}
            {%- if parent not in found -%}{%- do found.append(parent) -%}{%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}
