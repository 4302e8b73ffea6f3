{% macro compiled_test() %}
    {# In a test, the argument `model` hides the node that is compiled; here it does not. #}
    {% do return(model.unique_id if execute) %}
{% endmacro %}
