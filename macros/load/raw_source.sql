{% macro raw_source(name) %}
    {% do return(graph.sources.get('source.dbt_ripple.ripple_raw.' ~ name) if execute else none) %}
{% endmacro %}
