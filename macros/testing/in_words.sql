{% macro in_words(columns) %}
    {%- set parts = [] -%}
    {%- for column in columns -%}
        {%- if not loop.first -%}{%- do parts.append("' | '") -%}{%- endif -%}
        {%- do parts.append('coalesce(cast(' ~ column ~ ' as ' ~ dbt.type_string() ~ "), 'null')") -%}
    {%- endfor -%}
    {%- do return(dbt.concat(parts) if parts | length > 1 else parts[0]) -%}
{% endmacro %}
