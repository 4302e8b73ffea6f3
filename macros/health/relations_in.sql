{% macro relations_in(database, schema) %}
    {% set found = [] %}
    {% if adapter.check_schema_exists(database, schema) %}
        {% set found = adapter.dispatch('relations_in', 'dbt_ripple')(
            api.Relation.create(database=database, schema=schema).without_identifier()
        ) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{% macro default__relations_in(schema_relation) %}
    {% set found = [] %}
    {% for row in list_relations_without_caching(schema_relation).rows %}
        {% do found.append({'name': row['name'], 'type': row['type'] | string | lower}) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# Spark lists views among the tables, and does not say which are views. #}
{% macro spark__relations_in(schema_relation) %}
    {% set found = [] %}
    {% for row in run_query('show tables in ' ~ schema_relation).rows if not row['isTemporary'] %}
        {% do found.append({'name': row['tableName'], 'type': none}) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}
