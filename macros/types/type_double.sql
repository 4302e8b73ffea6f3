{% macro type_double() %}
    {{- return(adapter.dispatch('type_double', 'dbt_ripple')()) -}}
{% endmacro %}


{% macro default__type_double() %}
    {% do return('double precision') %}
{% endmacro %}


{# `type_float()` is 32 bits wide on Spark. #}
{% macro spark__type_double() %}
    {% do return('double') %}
{% endmacro %}
