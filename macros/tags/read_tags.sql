{% macro read_tags(relation) %}
    {%- do return(adapter.dispatch('read_tags', 'dbt_ripple')(relation) if execute else {}) -%}
{% endmacro %}


{% macro default__read_tags(relation) %}
    {%- do exceptions.raise_compiler_error(
        'dbt_ripple.read_tags knows where Spark and Databricks keep tags, not ' ~ target.type
        ~ ': write a macro ' ~ target.type ~ '__read_tags(relation) that returns a dictionary'
    ) -%}
{% endmacro %}


{% macro spark__read_tags(relation) %}
    {%- set found = {} -%}
    {%- for row in run_query('show tblproperties ' ~ relation).rows if row[0][:11] == 'dbt_ripple.' -%}
        {%- do found.update({row[0][11:]: row[1]}) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}


{% macro databricks__read_tags(relation) %}
    {%- set catalog = adapter.quote(relation.database) ~ '.information_schema' -%}
    {%- set where -%}
        where schema_name = {{ dbt_ripple.text_literal(relation.schema | lower) }}
            and table_name = {{ dbt_ripple.text_literal(relation.identifier | lower) }}
    {%- endset -%}
    {%- set query -%}
        select tag_name, tag_value, null as column_name from {{ catalog }}.table_tags {{ where }}
        union all
        select tag_name, tag_value, column_name from {{ catalog }}.column_tags {{ where }}
    {%- endset -%}
    {%- set found = {} -%}
    {%- for row in run_query(query).rows if row[0][:11] == 'dbt_ripple.' -%}
        {%- do found.update({('column.' ~ row[2]) if row[2] else row[0][11:]: row[1]}) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}
