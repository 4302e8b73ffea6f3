{{ config(enabled=part_is_on('operations')) }}

with runs as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
    where row_count is not null
),

nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

-- One run counts a relation once, and may say so of the relation and of several tests.
counted as (
    select
        project_name,
        target_name,
        node_id,
        invocation_id,
        max(ran_at) as measured_at,
        max(row_count) as row_count,
        max(case when is_slo and (is_failure or status = 'warn') then 1 else 0 end) as is_violated
    from runs
    where
        node_id is not null
        and (test_name is null or test_name = 'volume_within_sigma')
    group by project_name, target_name, node_id, invocation_id
),

added as (
    select
        *,
        row_count - lag(row_count) over (
            partition by project_name, target_name, node_id
            order by measured_at, invocation_id
        ) as rows_added
    from counted
),

measured as (
    select
        project_name,
        target_name,
        node_id,
        node_id as unique_id,
        'row_count' as measure,
        cast(null as {{ type_of('string') }}) as column_name,
        invocation_id,
        measured_at,
        row_count,
        cast(null as {{ type_of('bigint') }}) as null_count,
        cast(row_count as {{ type_double() }}) as measured_value,
        is_violated
    from added

    union all

    select
        project_name,
        target_name,
        node_id,
        node_id as unique_id,
        'rows_added' as measure,
        cast(null as {{ type_of('string') }}) as column_name,
        invocation_id,
        measured_at,
        row_count,
        cast(null as {{ type_of('bigint') }}) as null_count,
        cast(rows_added as {{ type_double() }}) as measured_value,
        is_violated
    from added
    where rows_added is not null

    union all

    select
        project_name,
        target_name,
        node_id,
        unique_id,
        'null_rate' as measure,
        column_name,
        invocation_id,
        ran_at as measured_at,
        row_count,
        null_count,
        coalesce({{ share('null_count', 'row_count') }}, 0) as measured_value,
        case when is_failure or status = 'warn' then 1 else 0 end as is_violated
    from runs
    where null_count is not null
),

compared as (
    select
        *,
        lag(measured_value) over (
            partition by project_name, target_name, unique_id, measure
            order by measured_at, invocation_id
        ) as previous_value,
        max(measured_value) over (partition by project_name, target_name, unique_id, measure) as largest_value
    from measured
),

final as (
    select
        compared.project_name,
        compared.target_name,
        compared.node_id,
        nodes.name as node_name,
        nodes.owner,
        compared.column_name,
        compared.measure,
        compared.unique_id,
        compared.invocation_id,
        compared.measured_at,
        compared.row_count,
        compared.null_count,
        compared.measured_value,
        compared.previous_value,
        compared.is_violated = 1 as is_violated,
        coalesce({{ bar('compared.measured_value', 'compared.largest_value') }}, '') as picture
    from compared
    left join nodes
        on
            compared.project_name = nodes.project_name
            and compared.node_id = nodes.unique_id
)

select * from final
