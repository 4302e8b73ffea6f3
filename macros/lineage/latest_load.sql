{% macro latest_load(snapshots) %}
    {#- Which load of this project is the newest; none before the first one. -#}
    {%- if snapshots is none -%}{%- do return(none) -%}{%- endif -%}
    {%- set found = run_query(
        'select snapshot_id from ' ~ snapshots
        ~ ' where project_name = ' ~ dbt_ripple.text_literal(project_name)
        ~ ' order by ' ~ dbt_ripple.newest_first() ~ ' limit 1'
    ) -%}
    {%- do return(found.rows[0][0] if found.rows | length else none) -%}
{% endmacro %}
