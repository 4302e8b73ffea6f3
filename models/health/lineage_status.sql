with snapshots as (
    select
        count(*) as snapshot_count,
        count(distinct project_name) as project_count,
        max(loaded_at) as last_loaded_at
    from {{ ref('dbt_ripple', 'dim_snapshots') }}
),

nodes as (
    select
        count(*) as node_count,
        count(case when analysis_status in ('opaque', 'broken') then 1 end) as unseen_node_count
    from {{ ref('dbt_ripple', 'dim_nodes') }}
),

columns as (
    select count(*) as column_count from {{ ref('dbt_ripple', 'dim_columns') }}
),

column_edges as (
    select count(*) as column_edge_count from {{ ref('dbt_ripple', 'fct_column_edges') }}
),

-- Past the staging models on purpose: they hide what was never published. `nodes` is the first table a load writes.
unfinished as (
    select count(distinct loaded.snapshot_id) as unfinished_load_count
    from {{ source('ripple_raw', 'nodes') }} as loaded
    left join {{ ref('dbt_ripple', 'stg_ripple__snapshots') }} as published
        on loaded.snapshot_id = published.snapshot_id
    where published.snapshot_id is null
),

final as (
    select
        case when snapshots.snapshot_count = 0 then 'empty' else 'loaded' end as status,
        case
            when snapshots.snapshot_count = 0 and unfinished.unfinished_load_count > 0
                then 'A load has started but not finished: wait for it, or run `dbt-ripple build` again'
            when snapshots.snapshot_count = 0
                then 'No lineage is loaded yet, so the lineage models are empty: run `dbt-ripple build`'
            when nodes.unseen_node_count > 0
                then 'Some nodes could not be seen through: analysis_reason in dim_nodes says why'
            else 'Every node was seen through'
        end as message,
        snapshots.last_loaded_at,
        snapshots.project_count,
        snapshots.snapshot_count,
        nodes.node_count,
        nodes.unseen_node_count,
        columns.column_count,
        column_edges.column_edge_count,
        unfinished.unfinished_load_count
    from snapshots
    cross join nodes
    cross join columns
    cross join column_edges
    cross join unfinished
)

select * from final
