{% macro is_worth_recording(result) %}
    {# dbt also lists hooks here; and this package's own models and tests are about lineage, not about data. #}
    {% do return(
        result.node is defined
        and result.node is not none
        and result.node.resource_type | string != 'operation'
        and result.node.package_name != 'dbt_ripple'
    ) %}
{% endmacro %}
