{#-
    The latest loads of each project, as a list for `in`; looked up while dbt compiles, so that other loads are not read.
    One is what the models show; of several, the target does not count, as in ripple_impacted_tests.
-#}
{% macro loads_shown(number=1) %}
    {%- set snapshots = ref('dbt_ripple', 'ripple_dim_snapshots') -%}
    {%- set loads = [''] -%}
    {%- if execute and adapter.get_relation(database=snapshots.database, schema=snapshots.schema, identifier=snapshots.identifier) is not none -%}
        {%- set query -%}
            select snapshot_id
            from (
                select
                    snapshot_id, is_latest,
                    row_number() over (
                        partition by project_name
                        order by coalesce(generated_at, loaded_at) desc, loaded_at desc, snapshot_id desc
                    ) as recency
                from {{ snapshots }}
            ) as ranked
            where {{ 'is_latest' if number == 1 else 'recency <= ' ~ number }}
        {%- endset -%}
        {%- for row in run_query(query).rows -%}{%- do loads.append(row[0]) -%}{%- endfor -%}
    {%- endif -%}
    {%- do return(dbt_ripple.text_literals(loads)) -%}
{% endmacro %}


{#- A lineage model, or, where that is a view, what it shows: the rows of these loads, past the view. -#}
{% macro as_shown(model, table, loads) %}
    {%- set relation, loaded = ref('dbt_ripple', model), source('ripple_raw', table) -%}
    {%- set found = graph.nodes.get('model.dbt_ripple.' ~ model) if execute -%}
    {%- if found and found.config.materialized in ('view', 'ripple_view') -%}
        {%- do return('(select * from ' ~ loaded ~ ' where snapshot_id in (' ~ loads ~ ')) as ' ~ table) -%}
    {%- endif -%}
    {%- do return(relation) -%}
{% endmacro %}
