{% macro tag_text(said) %}
    {%- if said is none or said is undefined or said is boolean or said is mapping -%}
        {%- do return(none) -%}
    {%- elif said is sequence and said is not string -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return((said | string).strip() or none) -%}
{% endmacro %}
