{% macro part_is_on(part, also=none) %}
    {%- set known = ['governance', 'health', 'operations'] -%}
    {%- set said = var('ripple_parts', none) or [] -%}
    {%- set parts = known if said == 'all' else ([said] if said is string else said | list) -%}
    {%- for name in parts if name not in known -%}
        {%- do exceptions.raise_compiler_error(
            'var ripple_parts: ' ~ name ~ ' is no part of dbt_ripple; it can name ' ~ known | join(', ') ~ ', or be all'
        ) -%}
    {%- endfor -%}
    {#- Who names a rule wants it asked. -#}
    {%- if (var('ripple_rules', none) or {}).values() | select | reject('equalto', 'off') | list -%}
        {%- set parts = parts + ['governance'] -%}
    {%- endif -%}
    {%- do return(part in parts and (also is none or also in parts)) -%}
{% endmacro %}
