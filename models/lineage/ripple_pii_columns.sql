{#-
    dbt writes no vars into its artifacts. This model's meta carries one there, so that whoever analyses the project
    knows which functions mask.
-#}
{{ config(
    file_format=var('ripple_file_format', 'parquet'),
    meta={'masking_functions': var('ripple_masking_functions', none) or []}
) }}

with nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

pii_columns as (
    select
        found.snapshot_id,
        found.unique_id,
        found.column_name,
        found.pii,
        found.origin,
        found.reason,
        nodes.project_name as source_project,
        found.source_id,
        found.source_column,
        found.path
    from {{ ref('dbt_ripple', 'stg_ripple__pii_columns') }} as found
    inner join nodes
        on
            found.snapshot_id = nodes.snapshot_id
            and found.unique_id = nodes.unique_id

    union all

    select
        snapshot_id,
        unique_id,
        column_name,
        pii,
        origin,
        reason,
        source_project,
        source_id,
        source_column,
        path
    from {{ ref('dbt_ripple', 'ripple_int_pii_elsewhere') }}
),

final as (
    select
        pii_columns.snapshot_id,
        nodes.project_name,
        pii_columns.unique_id,
        nodes.name as node_name,
        nodes.resource_type,
        nodes.package_name,
        nodes.owner,
        nodes.public,
        pii_columns.column_name,
        pii_columns.pii,
        pii_columns.origin,
        pii_columns.reason,
        pii_columns.source_project,
        pii_columns.source_id,
        pii_columns.source_column,
        pii_columns.path
    from pii_columns
    inner join nodes
        on
            pii_columns.snapshot_id = nodes.snapshot_id
            and pii_columns.unique_id = nodes.unique_id
)

select * from final
