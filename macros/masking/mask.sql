{% macro mask(column, how='sha2', keep=4) %}
    {%- if how == 'sha2' -%}
        {%- set masked = adapter.dispatch('mask_sha2', 'dbt_ripple')(column) -%}
    {%- elif how == 'redact' -%}
        {%- set masked = adapter.dispatch('mask_redact', 'dbt_ripple')(column) -%}
    {%- elif how == 'partial' -%}
        {%- set masked = adapter.dispatch('mask_partial', 'dbt_ripple')(column, keep) -%}
    {%- elif how == 'null' -%}
        {%- set masked = adapter.dispatch('mask_null', 'dbt_ripple')(column) -%}
    {%- elif how == 'tokenise' -%}
        {%- set masked = adapter.dispatch('mask_tokenise', 'dbt_ripple')(column) -%}
    {%- else -%}
        {%- do exceptions.raise_compiler_error(
            'dbt_ripple.mask: how is ' ~ how ~ '; it can be sha2, redact, partial, null or tokenise'
        ) -%}
    {%- endif -%}
    {#- By this CASE the lineage knows that the value is gone, whatever the expression: docs/pii.md. -#}
    {%- do return("case 'dbt_ripple.mask' when 'dbt_ripple.mask' then " ~ masked | trim ~ ' end') -%}
{% endmacro %}
