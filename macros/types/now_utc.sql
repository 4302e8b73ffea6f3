{% macro now_utc() %}
    {{- return(adapter.dispatch('now_utc', 'dbt_ripple')()) -}}
{% endmacro %}


{# Where timestamps are moments. #}
{% macro default__now_utc() %}
    {% do return(dbt.current_timestamp() | trim) %}
{% endmacro %}


{# Where `timestamp` has no zone, the loaded ones are in UTC. #}
{% macro duckdb__now_utc() %}
    {% do return("cast(now() at time zone 'UTC' as timestamp)") %}
{% endmacro %}


{% macro postgres__now_utc() %}
    {% do return("(now() at time zone 'UTC')") %}
{% endmacro %}


{% macro snowflake__now_utc() %}
    {% do return("cast(convert_timezone('UTC', current_timestamp()) as timestamp_ntz)") %}
{% endmacro %}
