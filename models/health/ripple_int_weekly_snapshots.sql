{{ config(enabled=part_is_on('health')) }}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
),

ranked as (
    select
        snapshot_id,
        project_name,
        is_latest,
        coalesce(generated_at, loaded_at) as seen_at,
        {{ week_of('coalesce(generated_at, loaded_at)') }} as week,
        row_number() over (
            partition by project_name, {{ week_of('coalesce(generated_at, loaded_at)') }}
            order by {{ newest_first() }}
        ) as recency
    from snapshots
),

-- The newest load stands for its week, however long ago that is.
final as (
    select
        snapshot_id,
        project_name,
        week,
        is_latest
    from ranked
    where
        recency = 1
        and (is_latest or seen_at >= {{ days_ago(var('ripple_history_days', 90)) }})
)

select * from final
