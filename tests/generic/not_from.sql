{% test not_from(model, column_name, columns=none, pii=none) %}
{#-
    One row for each column that the value of this one comes from although it may not, by the lineage that
    `dbt-ripple load` wrote last. `pii: true` stands for all columns that are declared as personal data, `pii: email`
    for those of a kind; masking ends it.
-#}
{{- dbt_ripple.lineage_problems('not_from', column_name, columns, pii=pii) -}}
{% endtest %}
