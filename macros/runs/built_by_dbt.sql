{% macro built_by_dbt(materialization) %}
    {#- dbt's own materialization: the adapter's, that of the adapter it builds upon, or the default one. -#}
    {%- for adapter_name in [target.type, 'spark', 'postgres', 'default'] -%}
        {%- set name = 'materialization_' ~ materialization ~ '_' ~ adapter_name -%}
        {%- if name in context -%}{%- do return(context[name]()) -%}{%- endif -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error('dbt_ripple: dbt has no materialization ' ~ materialization) -%}
{% endmacro %}
