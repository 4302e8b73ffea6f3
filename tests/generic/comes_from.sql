{% test comes_from(model, column_name, columns, only=false) %}
{#-
    One row for each column that the value of this one does not come from, by the lineage that `dbt-ripple load` wrote
    last. With `only`, one also for each other column of a source or seed that it comes from. A name is
    `node.column`, `source.table.column`, or `node.*`.
-#}
{{- dbt_ripple.lineage_problems('comes_from', column_name, columns, only=only) -}}
{% endtest %}
