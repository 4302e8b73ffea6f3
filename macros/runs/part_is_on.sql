{% macro part_is_on(part, also=none) %}
    {%- set known = ['governance', 'health', 'operations'] -%}
    {%- set said = var('ripple_parts', none) -%}
    {%- set parts = known if said is none else ([said] if said is string else said) -%}
    {%- for name in parts if name not in known -%}
        {%- do exceptions.raise_compiler_error(
            'var ripple_parts: ' ~ name ~ ' is no part of dbt_ripple; it can name ' ~ known | join(', ')
        ) -%}
    {%- endfor -%}
    {%- do return(part in parts and (also is none or also in parts)) -%}
{% endmacro %}
