{% test is_empty(model) %}

{%- set level = dbt_ripple.rule_level() -%}
{%- if level == 'off' -%}
    {{- config(enabled=false) -}}
{%- elif level is not none -%}
    {{- config(severity='error' if level == 'block' else 'warn') -}}
{%- endif -%}

{% if is_idle() %}
{{ nothing() }}
{% else %}
select * from {{ model }}
{% endif %}

{% endtest %}
