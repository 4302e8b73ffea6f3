{% macro edit_distance(one, other) %}
    {#- How many letters have to be put in, left out or replaced to get from one word to another one. -#}
    {%- set way = namespace(row=range(other | length + 1) | list) -%}
    {%- for letter in one -%}
        {%- set above = way.row -%}
        {%- set row = [loop.index] -%}
        {%- for wanted in other -%}
            {%- do row.append([
                above[loop.index] + 1,
                row[-1] + 1,
                above[loop.index0] + (0 if letter == wanted else 1),
            ] | min) -%}
        {%- endfor -%}
        {%- set way.row = row -%}
    {%- endfor -%}
    {%- do return(way.row[-1]) -%}
{% endmacro %}
