{{ config(enabled=part_is_on('health')) }}

with computed as (
    select
        *,
        -- Who reads it is to read the canonical one, or else the certified one.
        row_number() over (
            partition by snapshot_id, fingerprint
            order by
                case when canonical then 0 when certified then 1 else 2 end, unique_id, column_name
        ) as place
    from {{ ref('dbt_ripple', 'ripple_int_computed_columns') }}
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
        firsts.unique_id as twin_id,
        firsts.node_name as twin_name,
        firsts.owner as twin_owner,
        firsts.column_name as twin_column,
        firsts.expression as twin_expression,
        firsts.canonical as twin_canonical,
        coalesce(others.rows_fingerprint = firsts.rows_fingerprint, false) as same_rows
    from computed as others
    inner join computed as firsts
        on
            others.snapshot_id = firsts.snapshot_id
            and others.fingerprint = firsts.fingerprint
            and others.unique_id != firsts.unique_id
            and firsts.place = 1
    -- What chance or the time decides is another value each time.
    where
        others.is_repeatable
        and (
            coalesce(others.rows_fingerprint = firsts.rows_fingerprint, false)
            or not (others.is_joined or firsts.is_joined)
        )
)

select * from final
