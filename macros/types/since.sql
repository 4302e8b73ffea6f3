{#- The moment that the var ripple_since says: `24` or `24h` ago, `7d` ago, or the moment itself, in UTC. -#}
{% macro since() %}
    {%- set said = var('ripple_since', '24h') | string | trim -%}
    {%- set number = said[:-1] if said[-1:] in ('h', 'd') else said -%}
    {%- if number.isdigit() -%}
        {%- set part = 'day' if said[-1:] == 'd' else 'hour' -%}
        {{- return(dbt.dateadd(part, -(number | int), dbt_ripple.now_utc()) | trim) -}}
    {%- endif -%}
    {{- return('cast(' ~ dbt_ripple.text_literal(said) ~ ' as ' ~ dbt.type_timestamp() ~ ')') -}}
{% endmacro %}
