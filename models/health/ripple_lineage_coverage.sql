{{ config(enabled=part_is_on('health')) }}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'ripple_int_weekly_snapshots') }}
),

-- What has a query, or names what it reads: sources and seeds have nothing above them to be followed.
nodes as (
    select
        snapshot_id,
        unique_id,
        resource_type,
        criticality,
        analysis_status
    from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
    where
        analysis_status != 'leaf'
        and resource_type not in ('test', 'unit_test')
        and (package_name is null or package_name != 'dbt_ripple')
),

node_counts as (
    select
        snapshot_id,
        count(*) as nodes,
        count(case when analysis_status = 'analysed' then 1 end) as covered_nodes
    from nodes
    group by snapshot_id
),

-- An asset is covered if all of its columns are.
tier1_nodes as (
    select
        nodes.snapshot_id,
        nodes.unique_id,
        count(columns.column_name) as tier1_columns,
        count(
            case when nodes.analysis_status = 'analysed' and columns.fingerprint is not null then 1 end
        ) as covered_tier1_columns
    from nodes
    left join {{ ref('dbt_ripple', 'stg_ripple__columns') }} as columns
        on
            nodes.snapshot_id = columns.snapshot_id
            and nodes.unique_id = columns.unique_id
    where
        lower(nodes.criticality) = 'tier1'
        and nodes.resource_type in ('model', 'snapshot')
    group by nodes.snapshot_id, nodes.unique_id
),

column_counts as (
    select
        snapshot_id,
        count(*) as tier1_nodes,
        count(
            case when tier1_columns > 0 and covered_tier1_columns = tier1_columns then 1 end
        ) as covered_tier1_nodes,
        sum(tier1_columns) as tier1_columns,
        sum(covered_tier1_columns) as covered_tier1_columns
    from tier1_nodes
    group by snapshot_id
),

counted as (
    select
        snapshots.project_name,
        snapshots.week,
        snapshots.snapshot_id,
        snapshots.is_latest,
        coalesce(node_counts.nodes, 0) as nodes,
        coalesce(node_counts.covered_nodes, 0) as covered_nodes,
        coalesce(column_counts.tier1_nodes, 0) as tier1_nodes,
        coalesce(column_counts.covered_tier1_nodes, 0) as covered_tier1_nodes,
        coalesce(column_counts.tier1_columns, 0) as tier1_columns,
        coalesce(column_counts.covered_tier1_columns, 0) as covered_tier1_columns
    from snapshots
    left join node_counts on snapshots.snapshot_id = node_counts.snapshot_id
    left join column_counts on snapshots.snapshot_id = column_counts.snapshot_id
),

final as (
    select
        project_name,
        week,
        snapshot_id,
        is_latest,
        nodes,
        covered_nodes,
        {{ share('covered_nodes', 'nodes') }} as node_coverage,
        tier1_nodes,
        covered_tier1_nodes,
        {{ share('covered_tier1_nodes', 'tier1_nodes') }} as tier1_node_coverage,
        tier1_columns,
        covered_tier1_columns,
        {{ share('covered_tier1_columns', 'tier1_columns') }} as tier1_column_coverage
    from counted
)

select * from final
