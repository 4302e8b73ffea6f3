{% macro edit_distance(one, other) %}
    {{- return(adapter.dispatch('edit_distance', 'dbt_ripple')(one, other)) -}}
{% endmacro %}


{% macro default__edit_distance(one, other) %}levenshtein({{ one }}, {{ other }}){% endmacro %}


{% macro snowflake__edit_distance(one, other) %}editdistance({{ one }}, {{ other }}){% endmacro %}


{% macro bigquery__edit_distance(one, other) %}edit_distance({{ one }}, {{ other }}){% endmacro %}
