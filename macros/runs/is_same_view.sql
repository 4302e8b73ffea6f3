{% macro is_same_view(relation, sql) %}
    {#-
        Whether a view is there with this text. dbt-spark knows it from the list of relations (`information`); what another
        adapter does not say is not the same.
    -#}
    {%- if not relation or not relation.is_view or 'with ' not in sql -%}{%- do return(false) -%}{%- endif -%}
    {#- A comment before the query is no part of the view. -#}
    {%- do return(('View Text: with ' ~ sql.split('with ', 1)[1] | trim) in (relation.information or '')) -%}
{% endmacro %}
