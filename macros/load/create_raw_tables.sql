{% macro create_raw_tables() %}
    {{- return(adapter.dispatch('create_raw_tables', 'dbt_ripple')()) -}}
{% endmacro %}


{% macro default__create_raw_tables() %}
    {# `dbt compile` and `dbt docs generate` also render hooks: they look, and create nothing. #}
    {% if
        execute
        and flags.WHICH in ('run', 'build', 'test', 'retry')
        and var('ripple_create_raw_tables', true)
        and dbt_ripple.package_is_built()
    %}
        {% set missing = dbt_ripple.missing_raw_tables() %}
        {# Of tables that an older version made. #}
        {% do dbt_ripple.add_raw_columns() %}

        {% if missing %}
            {# All tables share one schema: it is rendered once, on the source. #}
            {% set raw_schema = (missing.values() | first).without_identifier() %}
            {% do dbt_ripple.create_raw_schema(raw_schema) %}

            {% for name, relation in missing.items() %}
                {% call statement('create_raw_table', auto_begin=true) %}
                    {{ dbt_ripple.create_raw_table_sql(relation, name) }}
                {% endcall %}
            {% endfor %}
            {# Looking around has begun a transaction where there are any, and dbt ends it by a rollback. #}
            {% do adapter.commit() %}

            {% do log(
                'dbt_ripple: created ' ~ missing | length ~ ' empty lineage tables in ' ~ raw_schema
                ~ '; fill them with `dbt-ripple build`', info=true
            ) %}
        {% endif %}
    {% endif %}
    {# A hook's text is executed as SQL: there is none left to run. #}
    {% do return('') %}
{% endmacro %}
