{% macro bar(value, largest) %}
    {% do return(
        "repeat('#', cast(round(20 * greatest(" ~ value ~ ', 0) / nullif(' ~ largest ~ ', 0)) as '
        ~ dbt.type_int() ~ '))'
    ) %}
{% endmacro %}
