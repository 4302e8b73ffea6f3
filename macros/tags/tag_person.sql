{% macro tag_person(said) %}
    {%- if said is mapping -%}
        {%- do return(dbt_ripple.tag_person(said.get('name')) or dbt_ripple.tag_person(said.get('email'))) -%}
    {%- elif said is sequence and said is not string -%}
        {%- set names = [] -%}
        {%- for person in said if dbt_ripple.tag_person(person) -%}
            {%- do names.append(dbt_ripple.tag_person(person)) -%}
        {%- endfor -%}
        {%- do return(names | join(', ') or none) -%}
    {%- endif -%}
    {%- do return(dbt_ripple.tag_text(said)) -%}
{% endmacro %}
