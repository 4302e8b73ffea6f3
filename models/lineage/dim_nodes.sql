{{ config(file_format=var('ripple_file_format', 'parquet')) }}

with nodes as (
    select * from {{ source('ripple_raw', 'nodes') }}
),

latest as (
    select * from {{ ref('dbt_ripple', 'dim_snapshots') }}
    where is_latest
),

final as (
    select
        nodes.snapshot_id,
        latest.project_name,
        nodes.unique_id,
        nodes.name,
        nodes.resource_type,
        nodes.asset_type,
        nodes.package_name,
        nodes.path,
        nodes.relation_name,
        nodes.materialized,
        nodes.language,
        nodes.description,
        nodes.owner,
        nodes.owner_name,
        nodes.owner_email,
        nodes.owner_channel,
        nodes.domain,
        nodes.group_name,
        nodes.access,
        nodes.contract_version,
        nodes.contract_enforced,
        nodes.criticality,
        nodes.certified,
        nodes.canonical,
        nodes.pii,
        nodes.public,
        nodes.key_tested,
        nodes.tags,
        nodes.checksum,
        nodes.rows_fingerprint,
        nodes.analysis_status,
        nodes.analysis_reason,
        nodes.own_rows_fingerprint,
        nodes.relation_key,
        nodes.label
    from nodes
    inner join latest on nodes.snapshot_id = latest.snapshot_id
)

select * from final
