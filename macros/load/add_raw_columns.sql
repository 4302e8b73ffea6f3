{% macro add_raw_columns() %}
    {{- return(adapter.dispatch('add_raw_columns', 'dbt_ripple')()) -}}
{% endmacro %}


{% macro default__add_raw_columns() %}
    {% for name, columns in dbt_ripple.raw_table_columns().items() %}
        {% set declared = source('ripple_raw', name) %}
        {% set existing = adapter.get_relation(
            database=declared.database, schema=declared.schema, identifier=declared.identifier
        ) %}
        {% if existing is not none %}
            {% set present = dbt_ripple.raw_columns_present(existing) %}
            {% set missing = [] %}
            {% for column, type in columns.items() if column not in present %}
                {# What dbt's macro reads of a column object; an object would turn text into varchar(256) here and there. #}
                {% set sql_type = dbt_ripple.type_of(type) | trim %}
                {% do missing.append({
                    'name': column, 'quoted': adapter.quote(column), 'data_type': sql_type, 'expanded_data_type': sql_type
                }) %}
            {% endfor %}
            {% if missing %}
                {% do alter_relation_add_remove_columns(existing, missing, none) %}
                {% do log(
                    'dbt_ripple: added ' ~ missing | map(attribute='name') | join(', ') ~ ' to ' ~ existing, info=true
                ) %}
            {% endif %}
        {% endif %}
    {% endfor %}
{% endmacro %}
