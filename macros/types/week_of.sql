{% macro week_of(moment) %}
    {% do return(dbt.date_trunc('week', moment) | trim) %}
{% endmacro %}
