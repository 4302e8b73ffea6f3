{% macro tag_flag(said) %}
    {%- set is_true = said is true or (said is string and said.strip() | lower in ('true', 'yes')) -%}
    {%- do return('true' if is_true else none) -%}
{% endmacro %}
