{% macro share(part, whole) %}
    {% do return('cast(' ~ part ~ ' as ' ~ dbt_ripple.type_double() ~ ') / nullif(' ~ whole ~ ', 0)') %}
{% endmacro %}
