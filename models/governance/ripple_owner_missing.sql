{{ config(enabled=part_is_on('governance')) }}

with dim_nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

found as (
    select * from dim_nodes
    where
        owner is null
        and resource_type in ('model', 'seed', 'snapshot', 'source', 'exposure')
        and package_name = project_name
),

exceptions as (
    {{ exceptions_to('owner_missing') }}
),

final as (
    select
        found.snapshot_id,
        found.unique_id,
        found.name,
        found.resource_type,
        found.path
    from found
    left join exceptions on found.unique_id = exceptions.unique_id
    where exceptions.unique_id is null
)

select * from final
