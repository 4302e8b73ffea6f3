{% macro day_of(moment) %}
    {% do return(dbt.date_trunc('day', moment) | trim) %}
{% endmacro %}
