{% macro exceptions_to(rule) %}
    {#-
        `ripple_exceptions` is a list in dbt_project.yml, or the name of a seed or model that holds the same; the
        package works without either.
    -#}
    {%- set said = var('ripple_exceptions', none) or [] -%}
    {%- if said is string %}
select
    unique_id,
    nullif(trim(cast(column_name as {{ dbt.type_string() }})), '') as column_name
from {{ ref(said) }}
where rule = {{ dbt_ripple.text_literal(rule) }}
    {%- else -%}
        {%- set ours = [] -%}
        {%- for exception in said -%}
            {%- if not exception.get('rule') or not exception.get('unique_id') or not exception.get('reason') -%}
                {%- do exceptions.raise_compiler_error(
                    'var ripple_exceptions: an entry needs rule, unique_id and reason (column_name where only one '
                    ~ 'column is meant); this one has ' ~ exception
                ) -%}
            {%- endif -%}
            {%- if exception['rule'] == rule -%}{%- do ours.append(exception) -%}{%- endif -%}
        {%- endfor -%}
        {%- for exception in ours or [{}] %}
select
    {{ dbt_ripple.text_literal(exception.get('unique_id')) }} as unique_id,
    {{ dbt_ripple.text_literal(exception.get('column_name')) }} as column_name
{{ 'union all' if not loop.last }}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
