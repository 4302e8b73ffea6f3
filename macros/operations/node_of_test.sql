{% macro node_of_test(test) %}
    {# dbt says it of generic tests on models; a test on a source, or a singular one, has it as its only parent. #}
    {% if test.attached_node %}
        {% do return(test.attached_node) %}
    {% endif %}
    {% set parents = test.depends_on.nodes %}
    {% do return(parents[0] if parents | length == 1 else none) %}
{% endmacro %}
