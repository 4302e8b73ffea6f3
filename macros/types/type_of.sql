{% macro type_of(name) %}
    {% do return({
        'string': dbt.type_string(),
        'bigint': dbt.type_bigint(),
        'double': dbt_ripple.type_double(),
        'boolean': dbt.type_boolean(),
        'timestamp': dbt.type_timestamp(),
    }[name]) %}
{% endmacro %}
