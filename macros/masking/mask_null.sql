{#- Null, of the column's own type. -#}
{% macro default__mask_null(column) %}
case when 1 = 0 then {{ column }} end
{% endmacro %}
