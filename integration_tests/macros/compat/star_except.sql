{% macro star_except(columns) %}
    {{- return(adapter.dispatch('star_except', 'shop')(columns)) -}}
{% endmacro %}

{% macro spark__star_except(columns) -%}
    * except ({{ columns | join(', ') }})
{%- endmacro %}

{% macro duckdb__star_except(columns) -%}
    * exclude ({{ columns | join(', ') }})
{%- endmacro %}
