{% macro week_after(week) %}
    {% do return(dbt.dateadd('day', 7, week) | trim) %}
{% endmacro %}
