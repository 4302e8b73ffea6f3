{#- The latest load of each project, as a list for `in`; it is looked up while dbt compiles, so that other loads are not read. -#}
{% macro loads_shown() %}
    {%- set snapshots = ref('dbt_ripple', 'ripple_dim_snapshots') -%}
    {%- set loads = [''] -%}
    {%- if execute and adapter.get_relation(database=snapshots.database, schema=snapshots.schema, identifier=snapshots.identifier) is not none -%}
        {%- for row in run_query('select snapshot_id from ' ~ snapshots ~ ' where is_latest').rows -%}{%- do loads.append(row[0]) -%}{%- endfor -%}
    {%- endif -%}
    {%- do return(dbt_ripple.text_literals(loads)) -%}
{% endmacro %}
