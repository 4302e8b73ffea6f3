{#-
    Whether several projects are loaded, so that one may read what another one builds. What follows lineage from one to
    another is left out of the query of a store with one project: it would take its time and find nothing.
-#}
{% macro projects_are_joined() %}
    {%- set snapshots = dbt_ripple.existing_raw_table('snapshots') if execute else none -%}
    {%- if snapshots is none or not var('ripple_max_projects', 2) | int -%}{%- do return(false) -%}{%- endif -%}
    {%- set found = run_query('select count(distinct project_name) from ' ~ snapshots) -%}
    {%- do return(found.rows[0][0] > 1) -%}
{% endmacro %}
