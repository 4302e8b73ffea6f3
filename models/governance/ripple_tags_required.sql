{{ config(enabled=part_is_on('governance')) }}

with dim_nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
    where
        resource_type in ('model', 'seed', 'snapshot', 'source', 'exposure')
        and package_name = project_name
),

-- What is asked for, the var ripple_rules says: a row for each tag and what it is asked of.
asked as (
    {{ required_tags() | indent(4) }}
),

held as (
    {{ held_tags() | indent(4) }}
),

found as (
    select
        dim_nodes.snapshot_id,
        dim_nodes.unique_id,
        dim_nodes.name,
        dim_nodes.resource_type,
        asked.tag as missing_tag,
        dim_nodes.owner,
        dim_nodes.path
    from dim_nodes
    inner join asked
        on
            asked.asked_of = 'all'
            or dim_nodes.resource_type = asked.asked_of
            or lower(dim_nodes.criticality) = asked.asked_of
            or (asked.asked_of = 'certified' and dim_nodes.certified)
            or (asked.asked_of = 'canonical' and dim_nodes.canonical)
            or (asked.asked_of = 'public' and dim_nodes.public)
    left join held
        on
            asked.tag = held.tag
            and dim_nodes.snapshot_id = held.snapshot_id
            and dim_nodes.unique_id = held.unique_id
    where held.unique_id is null
    group by
        dim_nodes.snapshot_id,
        dim_nodes.unique_id,
        dim_nodes.name,
        dim_nodes.resource_type,
        asked.tag,
        dim_nodes.owner,
        dim_nodes.path
),

exceptions as (
    {{ exceptions_to('tags_required') }}
),

final as (
    select
        found.snapshot_id,
        found.unique_id,
        found.name,
        found.resource_type,
        found.missing_tag,
        found.owner,
        found.path
    from found
    left join exceptions on found.unique_id = exceptions.unique_id
    where exceptions.unique_id is null
)

select * from final
