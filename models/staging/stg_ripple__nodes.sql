with source as (
    select * from {{ source('ripple_raw', 'nodes') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        source.snapshot_id,
        source.unique_id,
        source.name,
        source.resource_type,
        source.asset_type,
        source.package_name,
        source.path,
        source.relation_name,
        source.materialized,
        source.language,
        source.description,
        source.owner,
        source.owner_name,
        source.owner_email,
        source.owner_channel,
        source.domain,
        source.group_name,
        source.access,
        source.contract_version,
        source.contract_enforced,
        source.criticality,
        source.certified,
        source.canonical,
        source.pii,
        source.public,
        source.key_tested,
        source.tags,
        source.checksum,
        source.rows_fingerprint,
        source.analysis_status,
        source.analysis_reason,
        source.test_fingerprint,
        source.own_rows_fingerprint,
        source.relation_key,
        source.label
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
