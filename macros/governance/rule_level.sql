{% macro rule_level() %}
    {#- In a test, an argument hides dbt's own `model`, which is the test; here nothing does. -#}
    {%- set levels = var('ripple_rules', none) or {} -%}
    {%- if model.name not in levels -%}{{- return(none) -}}{%- endif -%}
    {%- set said = levels[model.name] -%}
    {#- As in ripple.yml: a level, or a dictionary that may have one. -#}
    {%- if said is mapping -%}
        {%- if 'level' not in said -%}
            {{- return('block' if model.name == 'tags_required' else none) -}}
        {%- endif -%}
        {%- set said = said['level'] -%}
    {%- endif -%}
    {#- YAML reads a bare `off` as false. -#}
    {%- set level = said or 'off' -%}
    {%- if level not in ('off', 'warn', 'block') -%}
        {%- do exceptions.raise_compiler_error(
            'var ripple_rules: ' ~ model.name ~ ' is ' ~ level ~ '; it can be off, warn or block'
        ) -%}
    {%- endif -%}
    {{- return(level) -}}
{% endmacro %}
