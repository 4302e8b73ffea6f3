{% macro default__mask_tokenise(column) %}
    {#- The text of a view is kept in the metastore, with the salt that stands in it. -#}
    {%- if execute and model.config.materialized in ('view', 'materialized_view', 'ephemeral') -%}
        {%- do exceptions.raise_compiler_error(
            "dbt_ripple.mask: how='tokenise' would leave the salt in the text of a view; build " ~ model.name
            ~ ' as a table or an incremental model'
        ) -%}
    {%- endif -%}
    {%- set text = 'cast(' ~ column ~ ' as ' ~ dbt.type_string() ~ ')' -%}
    {%- set salt = adapter.dispatch('mask_salt', 'dbt_ripple')() | trim -%}
    {%- do return(adapter.dispatch('mask_sha2', 'dbt_ripple')(salt ~ " || ':' || " ~ text)) -%}
{% endmacro %}


{#- A secret of the workspace is asked for when the query runs; no text holds it. -#}
{% macro databricks__mask_tokenise(column) %}
    {%- set text = 'cast(' ~ column ~ ' as ' ~ dbt.type_string() ~ ')' -%}
    {%- do return(dbt_ripple.default__mask_sha2("secret('dbt_ripple', 'salt') || ':' || " ~ text)) -%}
{% endmacro %}
