{% macro days_ago(days) %}
    {% do return(dbt.dateadd('day', -(days | int), dbt_ripple.now_utc()) | trim) %}
{% endmacro %}
