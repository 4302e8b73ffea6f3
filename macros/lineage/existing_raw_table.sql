{% macro existing_raw_table(name) %}
    {# Found through the graph, not by source(): who excludes this package keeps the tests that read it. #}
    {% set declared = dbt_ripple.raw_source(name) %}
    {% if declared %}
        {% do return(adapter.get_relation(
            database=declared.database, schema=declared.schema, identifier=declared.identifier
        )) %}
    {% endif %}
    {% do return(none) %}
{% endmacro %}
