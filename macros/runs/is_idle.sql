{% macro is_idle() %}
    {#- In a test, an argument hides dbt's own `model`, which is the test; here nothing does. -#}
    {%- if not execute or model.package_name != 'dbt_ripple' or dbt_ripple.is_asked_for() -%}
        {%- do return(false) -%}
    {%- endif -%}
    {%- do return(model.name not in (dbt_ripple.raw_setting('rules') or {})) -%}
{% endmacro %}


{% macro nothing() %}
select 1 as nothing
from (select 1 as one) as idle
where 1 = 0
{% endmacro %}
