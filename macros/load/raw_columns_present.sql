{% macro raw_columns_present(relation) %}
    {{- return(adapter.dispatch('raw_columns_present', 'dbt_ripple')(relation)) -}}
{% endmacro %}


{% macro default__raw_columns_present(relation) %}
    {% do return(adapter.get_columns_in_relation(relation) | map(attribute='name') | map('lower') | list) %}
{% endmacro %}


{# The list of the schema's tables has their columns, as ` |-- name: type`; of Delta and Iceberg maybe older ones. #}
{% macro spark__raw_columns_present(relation) %}
    {% set listed = relation.information or '' %}
    {% if ' |-- ' not in listed or relation.is_delta or relation.is_iceberg %}
        {% do return(dbt_ripple.default__raw_columns_present(relation)) %}
    {% endif %}
    {% set present = [] %}
    {% for line in listed.split('\n') if line.startswith(' |-- ') %}
        {% do present.append((line[5:].split(':') | first) | lower) %}
    {% endfor %}
    {% do return(present) %}
{% endmacro %}
