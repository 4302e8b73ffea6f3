{#-
    A model that is a view shows what ripple_dim_snapshots says is the latest; one that is a table what it was built with.
    Only the latter can lag behind ripple_dim_snapshots.
-#}
{%- set models = {
    'ripple_dim_nodes': 'nodes',
    'ripple_dim_columns': 'columns',
    'ripple_fct_edges': 'edges',
    'ripple_fct_column_edges': 'column_edges',
    'ripple_fct_node_closure': 'node_closure',
    'ripple_pii_columns': 'pii_columns',
} -%}
{%- set kept = {} -%}
{%- for model, table in models.items() -%}
    {%- set found = graph.nodes.get('model.dbt_ripple.' ~ model) if execute -%}
    {%- if not found or found.config.materialized not in ('view', 'ripple_view') -%}
        {%- do kept.update({model: (ref('dbt_ripple', model), source('ripple_raw', table))}) -%}
    {%- endif -%}
{%- endfor -%}
-- noqa: disable=LT02
-- What is loaded is read past the lineage models, so that this view also tells when one of them is behind.
with published as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

-- Past the staging models too: they hide what was never published. `nodes` is the first table a load writes.
written as (
    select distinct snapshot_id from {{ source('ripple_raw', 'nodes') }}
),

latest as (
    select snapshot_id
    from (
        select
            snapshot_id,
            row_number() over (
                partition by project_name
                order by {{ newest_first() }}
            ) as recency
        from published
    ) as ranked
    where recency = 1
),

-- Which snapshots each lineage model should hold (the latest that has rows of its kind), and which it does.
expected as (
{%- for model, (relation, table) in kept.items() %}
    select distinct
        '{{ model }}' as model_name,
        loaded_rows.snapshot_id
    from {{ table }} as loaded_rows
    inner join latest on loaded_rows.snapshot_id = latest.snapshot_id
    union all
{%- endfor %}
    select
        'ripple_dim_snapshots' as model_name,
        snapshot_id
    from published
    union all
    select
        'ripple_fct_cross_project_edges' as model_name,
        snapshot_id
    from latest
),

crossings as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_cross_project_edges') }}
),

held as (
{%- for model, (relation, table) in kept.items() %}
    select distinct
        '{{ model }}' as model_name,
        snapshot_id
    from {{ relation }}
    union all
{%- endfor %}
    select distinct
        'ripple_dim_snapshots' as model_name,
        snapshot_id
    from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    union all
    -- It need not hold each load, but none that is not the latest any more.
    select
        'ripple_fct_cross_project_edges' as model_name,
        snapshot_id
    from (
        select snapshot_id from latest
        union distinct
        select parent_snapshot_id as snapshot_id from crossings
        union distinct
        select child_snapshot_id as snapshot_id from crossings
    ) as in_crossings
),

behind as (
    select
        count(distinct coalesce(expected.model_name, held.model_name)) as stale_model_count,
        min(coalesce(expected.model_name, held.model_name)) as one_stale_model
    from expected
    full outer join held
        on
            expected.model_name = held.model_name
            and expected.snapshot_id = held.snapshot_id
    where
        expected.model_name is null
        or held.model_name is null
),

-- What was built after the last load of its project: the lineage may be of older code.
last_loads as (
    select
        project_name,
        coalesce(target_name, '') as target_name,
        max(loaded_at) as loaded_at
    from published
    group by project_name, coalesce(target_name, '')
),

newer as (
    select
        count(distinct runs.invocation_id) as newer_run_count,
        max(runs.recorded_at) as last_run_at
    from {{ source('ripple_raw', 'run_history') }} as runs
    inner join last_loads
        on
            runs.project_name = last_loads.project_name
            and runs.recorded_at > last_loads.loaded_at
    where
        last_loads.target_name in ('', runs.target_name)
        and runs.resource_type in ('model', 'seed', 'snapshot')
),

loaded as (
    select
        count(*) as snapshot_count,
        count(distinct project_name) as project_count,
        max(loaded_at) as last_loaded_at
    from published
),

unfinished as (
    select count(*) as unfinished_load_count
    from written
    left join published on written.snapshot_id = published.snapshot_id
    where published.snapshot_id is null
),

nodes as (
    select
        count(*) as node_count,
        count(case when analysis_status in ('opaque', 'broken') then 1 end) as unseen_node_count
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

-- As many as the models have, which are views that join more to each row.
columns as (
    select count(*) as column_count
{%- if 'ripple_dim_columns' in kept %}
    from {{ kept['ripple_dim_columns'][0] }}
{%- else %}
    from {{ source('ripple_raw', 'columns') }} as loaded_rows
    inner join latest on loaded_rows.snapshot_id = latest.snapshot_id
{%- endif %}
),

column_edges as (
    select count(*) as column_edge_count
{%- if 'ripple_fct_column_edges' in kept %}
    from {{ kept['ripple_fct_column_edges'][0] }}
{%- else %}
    from {{ source('ripple_raw', 'column_edges') }} as loaded_rows
    inner join latest on loaded_rows.snapshot_id = latest.snapshot_id
{%- endif %}
),

judged as (
    select
        case
            when loaded.snapshot_count = 0 then 'empty'
            when behind.stale_model_count > 0 then 'stale'
            when newer.newer_run_count > 0 then 'behind'
            else 'loaded'
        end as status,
        behind.stale_model_count,
        behind.one_stale_model,
        loaded.last_loaded_at,
        loaded.project_count,
        loaded.snapshot_count,
        nodes.node_count,
        nodes.unseen_node_count,
        columns.column_count,
        column_edges.column_edge_count,
        unfinished.unfinished_load_count,
        newer.newer_run_count,
        newer.last_run_at
    from loaded
    cross join unfinished
    cross join newer
    cross join behind
    cross join nodes
    cross join columns
    cross join column_edges
),

final as (
    select
        status,
        case
            when status = 'empty' and unfinished_load_count > 0
                then 'A load has started but not finished: wait for it, or run `dbt-ripple build` again'
            when status = 'empty'
                then 'No lineage is loaded yet, so the lineage models are empty: run `dbt-ripple build`'
            when status = 'stale'
                then concat(
                    'Not every lineage model shows the last load (',
                    one_stale_model,
                    ' does not): run `dbt build --select package:dbt_ripple`'
                )
            when status = 'behind'
                then concat(
                    'Runs are newer than the last load (',
                    cast(newer_run_count as {{ type_of('string') }}),
                    '), whose code may be older: run `dbt-ripple build` after each deployment'
                )
            when unseen_node_count > 0
                then 'Some nodes could not be analysed: analysis_reason in ripple_dim_nodes says why'
            else 'Every node was analysed'
        end as message,
        last_loaded_at,
        project_count,
        snapshot_count,
        node_count,
        unseen_node_count,
        column_count,
        column_edge_count,
        unfinished_load_count,
        stale_model_count,
        newer_run_count,
        last_run_at
    from judged
)

select * from final
