{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

with recorded as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__run_history') }}
),

run_results as (
    select * from {{ source('ripple_raw', 'run_results') }}
),

snapshots as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

nodes as (
    select * from {{ source('ripple_raw', 'nodes') }}
),

-- What was never published is not in `snapshots`, which all of it is joined with.
-- A test with several parents does not say which one it is about.
tested as (
    select
        edges.snapshot_id,
        edges.child_id as unique_id,
        min(edges.parent_id) as node_id
    from {{ source('ripple_raw', 'edges') }} as edges
    inner join nodes
        on
            edges.snapshot_id = nodes.snapshot_id
            and edges.child_id = nodes.unique_id
    where nodes.resource_type in ('test', 'unit_test')
    group by edges.snapshot_id, edges.child_id
    having count(*) = 1
),

-- What a load brought along; one run may have come with several loads.
loaded as (
    select
        run_results.*,
        snapshots.project_name,
        snapshots.target_name,
        snapshots.loaded_at,
        nodes.resource_type,
        nodes.name,
        nodes.tags,
        case
            when nodes.resource_type in ('test', 'unit_test') then tested.node_id
            else run_results.unique_id
        end as node_id,
        row_number() over (
            partition by run_results.invocation_id, run_results.unique_id
            order by snapshots.loaded_at, snapshots.snapshot_id
        ) as times_loaded
    from run_results
    inner join snapshots on run_results.snapshot_id = snapshots.snapshot_id
    inner join nodes
        on
            run_results.snapshot_id = nodes.snapshot_id
            and run_results.unique_id = nodes.unique_id
    left join tested
        on
            run_results.snapshot_id = tested.snapshot_id
            and run_results.unique_id = tested.unique_id
    where nodes.package_name is null or nodes.package_name != 'dbt_ripple'
),

all_runs as (
    select
        invocation_id,
        unique_id,
        project_name,
        coalesce(target_name, '') as target_name,
        resource_type,
        name,
        node_id,
        test_name,
        tags,
        status,
        coalesce(completed_at, started_at, recorded_at) as ran_at,
        started_at,
        execution_time,
        rows_affected,
        row_count,
        failures,
        message,
        max_loaded_at,
        checksum,
        git_sha,
        column_name,
        null_count,
        compared_days
    from recorded

    union all

    select
        loaded.invocation_id,
        loaded.unique_id,
        loaded.project_name,
        coalesce(loaded.target_name, '') as target_name,
        loaded.resource_type,
        loaded.name,
        loaded.node_id,
        cast(null as {{ type_of('string') }}) as test_name,
        loaded.tags,
        loaded.status,
        coalesce(loaded.completed_at, loaded.started_at, loaded.loaded_at) as ran_at,
        loaded.started_at,
        loaded.execution_time,
        loaded.rows_affected,
        cast(null as {{ type_of('bigint') }}) as row_count,
        loaded.failures,
        loaded.message,
        cast(null as {{ type_of('timestamp') }}) as max_loaded_at,
        cast(null as {{ type_of('string') }}) as checksum,
        cast(null as {{ type_of('string') }}) as git_sha,
        cast(null as {{ type_of('string') }}) as column_name,
        cast(null as {{ type_of('bigint') }}) as null_count,
        cast(null as {{ type_of('bigint') }}) as compared_days
    from loaded
    left join recorded
        on
            loaded.invocation_id = recorded.invocation_id
            and loaded.unique_id = recorded.unique_id
    where
        loaded.times_loaded = 1
        and recorded.invocation_id is null
),

judged as (
    select
        *,
        coalesce(
            test_name in ('fresh_within', 'null_rate_at_most', 'volume_within_sigma', 'schema_matches_contract'), false
        )
        or concat(',', coalesce(tags, ''), ',') like '%,slo,%' as is_slo
    from all_runs
),

final as (
    select
        invocation_id,
        unique_id,
        project_name,
        target_name,
        resource_type,
        name,
        node_id,
        test_name,
        tags,
        status,
        status in ('success', 'pass') as is_success,
        status in ('error', 'fail', 'runtime error', 'partial success') as is_failure,
        is_slo,
        ran_at,
        started_at,
        execution_time,
        rows_affected,
        row_count,
        failures,
        message,
        max_loaded_at,
        checksum,
        git_sha,
        column_name,
        null_count,
        compared_days
    from judged
)

select * from final
