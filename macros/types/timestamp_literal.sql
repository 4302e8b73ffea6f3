{% macro timestamp_literal(moment) %}
    {# dbt's own times are in UTC, whether they say so or not. #}
    {%- if moment is none or moment is undefined -%}
        {{- return('cast(null as ' ~ dbt.type_timestamp() ~ ')') -}}
    {%- endif -%}
    {{- return("cast('" ~ moment.strftime('%Y-%m-%d %H:%M:%S.%f') ~ "+00:00' as " ~ dbt.type_timestamp() ~ ')') -}}
{% endmacro %}
