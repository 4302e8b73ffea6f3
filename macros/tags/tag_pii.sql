{% macro tag_pii(said, labels) %}
    {%- if said is none -%}
        {%- do return('pii' if 'pii' in labels | map('lower') else none) -%}
    {%- elif said is boolean -%}
        {%- do return('pii' if said else none) -%}
    {%- endif -%}
    {%- set kind = dbt_ripple.tag_text(said) -%}
    {%- do return(none if not kind or kind | lower in ('none', 'no', 'false') else kind) -%}
{% endmacro %}
