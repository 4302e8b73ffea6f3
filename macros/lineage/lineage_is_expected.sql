{% macro lineage_is_expected() %}
    {%- do return(adapter.dispatch('lineage_is_expected', 'dbt_ripple')()) -%}
{% endmacro %}


{% macro default__lineage_is_expected() %}
    {%- do return(false) -%}
{% endmacro %}


{# What `dbt-ripple load` writes to; Databricks has it from Spark. #}
{% macro spark__lineage_is_expected() %}
    {%- do return(true) -%}
{% endmacro %}
