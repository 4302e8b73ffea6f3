{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
),

runs as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
),

-- What another target was compiled for is compared with its own past.
ordered as (
    select
        snapshot_id,
        project_name,
        coalesce(target_name, '') as target_name,
        coalesce(generated_at, loaded_at) as seen_at,
        git_sha,
        ripple_version,
        row_number() over (
            partition by project_name, target_name
            order by coalesce(generated_at, loaded_at), loaded_at, snapshot_id
        ) as place
    from snapshots
),

pairs as (
    select
        heads.project_name,
        heads.target_name,
        bases.snapshot_id as base_snapshot_id,
        heads.snapshot_id,
        bases.seen_at as base_seen_at,
        heads.seen_at,
        bases.git_sha as base_git_sha,
        heads.git_sha,
        bases.ripple_version = heads.ripple_version as is_comparable
    from ordered as heads
    inner join ordered as bases
        on
            heads.project_name = bases.project_name
            and heads.target_name = bases.target_name
            and heads.place = bases.place + 1
    where
        heads.seen_at >= {{ days_ago(var('ripple_history_days', 90)) }}
),

changed_files as (
    select
        pairs.snapshot_id,
        pairs.base_seen_at,
        pairs.seen_at,
        pairs.project_name,
        pairs.target_name,
        after_change.unique_id,
        after_change.checksum
    from pairs
    inner join nodes as after_change on pairs.snapshot_id = after_change.snapshot_id
    left join nodes as before_change
        on
            pairs.base_snapshot_id = before_change.snapshot_id
            and after_change.unique_id = before_change.unique_id
    where
        after_change.checksum is not null
        and (before_change.checksum is null or before_change.checksum != after_change.checksum)
),

-- A load often follows the first run of what it loads: that run, where it was recorded, dates the change.
sightings as (
    select
        changed_files.snapshot_id,
        runs.started_at
    from changed_files
    inner join runs
        on
            changed_files.project_name = runs.project_name
            and changed_files.unique_id = runs.unique_id
            and changed_files.checksum = runs.checksum
            and changed_files.base_seen_at < runs.started_at
            and changed_files.seen_at > runs.started_at
    where changed_files.target_name in ('', runs.target_name)

    union all

    select
        pairs.snapshot_id,
        runs.started_at
    from pairs
    inner join runs
        on
            pairs.project_name = runs.project_name
            and pairs.git_sha = runs.git_sha
            and pairs.base_seen_at < runs.started_at
            and pairs.seen_at > runs.started_at
    where
        pairs.target_name in ('', runs.target_name)
        and pairs.git_sha != coalesce(pairs.base_git_sha, '')
),

first_sightings as (
    select
        snapshot_id,
        min(started_at) as started_at
    from sightings
    group by snapshot_id
),

dated as (
    select
        pairs.*,
        coalesce(first_sightings.started_at, pairs.seen_at) as changed_at,
        row_number() over (
            partition by pairs.project_name, pairs.target_name
            order by pairs.seen_at desc, pairs.snapshot_id desc
        ) as recency
    from pairs
    left join first_sightings on pairs.snapshot_id = first_sightings.snapshot_id
),

final as (
    select
        project_name,
        target_name,
        base_snapshot_id,
        snapshot_id,
        base_git_sha,
        git_sha,
        changed_at,
        is_comparable,
        recency = 1 as is_latest
    from dated
)

select * from final
