{% macro existing_run_history() %}
    {# Found through the graph, not by source(): who excludes this package keeps the tests that read its history. #}
    {% set declared = dbt_ripple.raw_source('run_history') %}
    {% if declared %}
        {% do return(adapter.get_relation(
            database=declared.database, schema=declared.schema, identifier=declared.identifier
        )) %}
    {% endif %}
    {% do return(none) %}
{% endmacro %}
