{% macro tested_node(whole=false) %}
    {# In a test, the argument `model` hides the node that is compiled; here it does not. #}
    {% if execute %}
        {% if whole and model.config.where %}
            {% do exceptions.raise_compiler_error(
                'volume_within_sigma compares the rows of the whole relation with what was recorded of it: '
                ~ 'remove `where` from ' ~ model.name
            ) %}
        {% endif %}
        {% do return(dbt_ripple.node_of_test(model)) %}
    {% endif %}
{% endmacro %}
