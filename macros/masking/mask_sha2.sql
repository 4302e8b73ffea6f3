{% macro default__mask_sha2(column) %}
sha2(cast({{ column }} as {{ dbt.type_string() }}), 256)
{% endmacro %}


{% macro duckdb__mask_sha2(column) %}
sha256(cast({{ column }} as {{ dbt.type_string() }}))
{% endmacro %}


{% macro postgres__mask_sha2(column) %}
encode(sha256(convert_to(cast({{ column }} as {{ dbt.type_string() }}), 'UTF8')), 'hex')
{% endmacro %}


{% macro bigquery__mask_sha2(column) %}
to_hex(sha256(cast({{ column }} as {{ dbt.type_string() }})))
{% endmacro %}
