-- What is loaded is read past the lineage models, so that this view also tells when they are behind.
with published as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

-- Past the staging models too: they hide what was never published. `nodes` is the first table a load writes.
written as (
    select distinct snapshot_id from {{ source('ripple_raw', 'nodes') }}
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

shown as (
    select count(*) as shown_snapshot_count from {{ ref('dbt_ripple', 'dim_snapshots') }}
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

judged as (
    select
        case
            when loaded.snapshot_count = 0 then 'empty'
            when loaded.snapshot_count != shown.shown_snapshot_count then 'stale'
            else 'loaded'
        end as status,
        loaded.last_loaded_at,
        loaded.project_count,
        loaded.snapshot_count,
        nodes.node_count,
        nodes.unseen_node_count,
        columns.column_count,
        column_edges.column_edge_count,
        unfinished.unfinished_load_count
    from loaded
    cross join unfinished
    cross join shown
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
                then 'The lineage models are behind the last load: run `dbt build --select package:dbt_ripple`'
            when unseen_node_count > 0
                then 'Some nodes could not be seen through: analysis_reason in dim_nodes says why'
            else 'Every node was seen through'
        end as message,
        last_loaded_at,
        project_count,
        snapshot_count,
        node_count,
        unseen_node_count,
        column_count,
        column_edge_count,
        unfinished_load_count
    from judged
)

select * from final
