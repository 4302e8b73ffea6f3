{% macro tag_drift(relation) %}
    {%- set found = [] -%}
    {%- if execute -%}
        {#- In a test, an argument hides dbt's own `model`, which is the test; here nothing does. -#}
        {%- set tested = model.attached_node or model.depends_on.nodes[-1] -%}
        {%- set wanted = dbt_ripple.node_tags(graph.nodes[tested]) -%}
        {%- set held = dbt_ripple.read_tags(relation) -%}
        {%- for name in (wanted.keys() | list + held.keys() | list) | unique -%}
            {#- Spark shows no value whose name or text looks like a secret or an address. -#}
            {%- if wanted.get(name) != held.get(name) and '(redacted)' not in held.get(name, '') -%}
                {%- do found.append([name, wanted.get(name), held.get(name)]) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(found) -%}
{% endmacro %}
