{% macro hash_of(columns) %}
    {% do return(dbt.hash(dbt_ripple.in_words(columns)) | trim) %}
{% endmacro %}
