{% macro raw_setting(name) %}
    {#
        A var of the package as the package sees it: where a macro runs for a node of yours, `vars: dbt_ripple:` is
        out of sight. So the source carries its settings.
    #}
    {% set declared = dbt_ripple.raw_source('run_history') %}
    {% do return((declared.config.meta or declared.meta or {}).get(name) if declared else none) %}
{% endmacro %}
