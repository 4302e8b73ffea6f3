{% macro run_history_relation() %}
    {% set existing = dbt_ripple.existing_raw_table('run_history') %}
    {% set wanted = dbt_ripple.raw_table_columns()['run_history'] %}

    {% if existing is none %}
        {% set declared = dbt_ripple.raw_source('run_history') %}
        {% if not declared or not dbt_ripple.raw_setting('create_raw_tables') %}
            {% do exceptions.warn(
                'dbt_ripple: this run is not recorded, the table run_history is missing and '
                ~ 'ripple_create_raw_tables is false'
            ) %}
            {% do return(none) %}
        {% endif %}
        {% set missing = api.Relation.create(
            database=declared.database, schema=declared.schema, identifier=declared.identifier, type='table'
        ) %}
        {% do dbt_ripple.create_raw_schema(missing.without_identifier()) %}
        {% call statement('create_run_history', auto_begin=true) %}
            {{ dbt_ripple.create_raw_table_sql(missing, 'run_history') }}
        {% endcall %}
        {% do adapter.commit() %}
        {% do return(missing) %}
    {% endif %}

    {% set present = adapter.get_columns_in_relation(existing) | map(attribute='name') | map('lower') | list %}
    {% set lacking = wanted.keys() | reject('in', present) | list %}
    {% if lacking %}
        {% do exceptions.warn(
            'dbt_ripple: this run is not recorded, ' ~ existing ~ ' lacks the columns ' ~ lacking | join(', ')
            ~ ': run `dbt-ripple load`, which adds them'
        ) %}
        {% do return(none) %}
    {% endif %}
    {% do return(existing) %}
{% endmacro %}
