{% macro apply_column_comments(relation, node, wanted) %}
    {%- set held = {} -%}
    {#- Behind the columns come the partitions, which name some of them again, without comments. -#}
    {%- for row in run_query('describe table ' ~ relation).rows if row[0] and (row[0] | lower) not in held -%}
        {%- do held.update({row[0] | lower: [row[0], row[2] or '']}) -%}
    {%- endfor -%}
    {%- for key, column in (node.columns or {}).items() if (column.name or key) | lower in held -%}
        {%- set name, comment = held[(column.name or key) | lower] -%}
        {%- set pii = wanted.get('column.' ~ (column.name or key)) -%}
        {%- set said = (column.description ~ (' [pii: ' ~ pii ~ ']' if pii else '')).strip() -%}
        {%- if said != comment -%}
            {%- do run_query(
                'alter table ' ~ relation ~ ' alter column `' ~ name | replace('`', '``') ~ '` comment '
                ~ dbt_ripple.text_literal(said)
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}
