{{ config(enabled=part_is_on('governance')) }}

with pii_columns as (
    select * from {{ ref('dbt_ripple', 'ripple_pii_columns') }}
),

found as (
    select * from pii_columns
    where
        origin = 'inherited'
        and resource_type in ('model', 'seed', 'snapshot')
        and package_name = project_name
),

exceptions as (
    {{ exceptions_to('pii_untagged') }}
),

final as (
    select
        found.snapshot_id,
        found.unique_id,
        found.node_name,
        found.column_name,
        found.pii,
        found.owner,
        found.source_id,
        found.source_column,
        found.path
    from found
    left join exceptions
        on
            found.unique_id = exceptions.unique_id
            and (exceptions.column_name is null or lower(found.column_name) = lower(exceptions.column_name))
    where exceptions.unique_id is null
)

select * from final
