{% macro lineage_is_loaded(snapshots) %}
    {%- if snapshots is none -%}{%- do return(false) -%}{%- endif -%}
    {%- set found = run_query(
        'select count(*) as loads from ' ~ snapshots
        ~ ' where project_name = ' ~ dbt_ripple.text_literal(project_name)
    ) -%}
    {%- do return(found.rows[0][0] | int > 0) -%}
{% endmacro %}
