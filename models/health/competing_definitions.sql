{{ config(enabled=part_is_on('health')) }}

with computed as (
    select
        *,
        row_number() over (
            partition by snapshot_id, lower(column_name)
            order by case when canonical then 0 else 1 end, unique_id
        ) as place
    from {{ ref('dbt_ripple', 'int_computed_columns') }}
    where
        canonical
        or certified
),

final as (
    select
        others.snapshot_id,
        others.project_name,
        others.unique_id,
        others.node_name,
        others.owner,
        others.column_name,
        others.expression,
        others.canonical,
        firsts.unique_id as other_id,
        firsts.node_name as other_name,
        firsts.owner as other_owner,
        firsts.expression as other_expression,
        firsts.canonical as other_canonical,
        case
            when others.canonical then 'both are canonical'
            when firsts.canonical then concat(firsts.node_name, ' is canonical')
            else 'none is canonical'
        end as canonical_is,
        case
            when coalesce(others.expression, '') != coalesce(firsts.expression, '') then 'another expression'
            else 'the same expression over other columns or rows'
        end as difference
    from computed as others
    inner join computed as firsts
        on
            others.snapshot_id = firsts.snapshot_id
            and lower(others.column_name) = lower(firsts.column_name)
            and others.unique_id != firsts.unique_id
            and others.fingerprint != firsts.fingerprint
            and firsts.place = 1
)

select * from final
