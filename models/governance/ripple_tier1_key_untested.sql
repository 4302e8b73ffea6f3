{{ config(enabled=part_is_on('governance')) }}

with dim_nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

found as (
    select * from dim_nodes
    where
        lower(criticality) = 'tier1'
        and not key_tested
        and package_name = project_name
),

exceptions as (
    {{ exceptions_to('tier1_key_untested') }}
),

final as (
    select
        found.snapshot_id,
        found.unique_id,
        found.name,
        found.resource_type,
        found.owner,
        found.path
    from found
    left join exceptions on found.unique_id = exceptions.unique_id
    where exceptions.unique_id is null
)

select * from final
