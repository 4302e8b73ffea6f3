{% macro missing_raw_tables() %}
    {{- return(adapter.dispatch('missing_raw_tables', 'dbt_ripple')()) -}}
{% endmacro %}


{% macro default__missing_raw_tables() %}
    {% set missing = {} %}
    {% for name in dbt_ripple.raw_table_columns() %}
        {% set declared = source('ripple_raw', name) %}
        {# The first call lists the schema, the others are answered by dbt's cache. #}
        {% set existing = adapter.get_relation(
            database=declared.database, schema=declared.schema, identifier=declared.identifier
        ) %}
        {% if existing is none %}
            {# A relation of its own: what source() gives prints as a subquery under --empty and --sample. #}
            {% do missing.update({name: api.Relation.create(
                database=declared.database, schema=declared.schema, identifier=declared.identifier, type='table'
            )}) %}
        {% endif %}
    {% endfor %}
    {% do return(missing) %}
{% endmacro %}
