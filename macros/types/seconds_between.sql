{% macro seconds_between(earlier, later) %}
    {{- return(adapter.dispatch('seconds_between', 'dbt_ripple')(earlier, later)) -}}
{% endmacro %}


{% macro default__seconds_between(earlier, later) %}
    {% do return(dbt.datediff(earlier, later, 'second') | trim) %}
{% endmacro %}


{# dbt's own refuses nulls on Spark, and an open incident has not ended. #}
{% macro spark__seconds_between(earlier, later) %}
    {% do return('(unix_seconds(' ~ later ~ ') - unix_seconds(' ~ earlier ~ '))') %}
{% endmacro %}
