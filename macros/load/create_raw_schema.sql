{% macro create_raw_schema(relation) %}
    {{- return(adapter.dispatch('create_raw_schema', 'dbt_ripple')(relation)) -}}
{% endmacro %}


{% macro default__create_raw_schema(relation) %}
    {# Asked first: who may not create schemas can still be given one. #}
    {% if not adapter.check_schema_exists(relation.database, relation.schema) %}
        {% do adapter.create_schema(relation) %}
    {% endif %}
{% endmacro %}
