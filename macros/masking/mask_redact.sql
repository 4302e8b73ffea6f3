{% macro default__mask_redact(column) %}
case when {{ column }} is not null then '***' end
{% endmacro %}
