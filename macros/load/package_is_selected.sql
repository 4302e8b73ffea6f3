{% macro package_is_selected() %}
    {# unique_ids read <resource type>.<package>.<name>: models in a run, data tests in a test, both in a build. #}
    {% set found = namespace(any=false) %}
    {% for unique_id in selected_resources %}
        {% if unique_id.split('.')[1] == 'dbt_ripple' %}
            {% set found.any = true %}
        {% endif %}
    {% endfor %}
    {% do return(found.any) %}
{% endmacro %}
