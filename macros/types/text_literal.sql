{% macro text_literal(value) %}
    {%- if value is none or value is undefined -%}
        {{- return('cast(null as ' ~ dbt.type_string() ~ ')') -}}
    {%- endif -%}
    {{- return(adapter.dispatch('text_literal', 'dbt_ripple')(value | string)) -}}
{% endmacro %}


{% macro text_literals(values) %}
    {%- set literals = [] -%}
    {%- for value in values -%}{%- do literals.append(dbt_ripple.text_literal(value)) -%}{%- endfor -%}
    {%- do return(literals | join(', ')) -%}
{% endmacro %}


{% macro default__text_literal(value) %}
    {% do return("'" ~ value | replace("'", "''") ~ "'") %}
{% endmacro %}


{# A backslash escapes; and `${...}` would be substituted. #}
{% macro spark__text_literal(value) %}
    {% do return(
        "'" ~ value | replace('\\', '\\\\') | replace("'", "\\'") | replace('$', '\\u0024') ~ "'"
    ) %}
{% endmacro %}


{% macro snowflake__text_literal(value) %}
    {% do return("'" ~ value | replace('\\', '\\\\') | replace("'", "\\'") ~ "'") %}
{% endmacro %}


{% macro bigquery__text_literal(value) %}
    {% do return(
        "'" ~ value | replace('\\', '\\\\') | replace("'", "\\'") | replace('\n', '\\n') | replace('\r', '\\r') ~ "'"
    ) %}
{% endmacro %}
