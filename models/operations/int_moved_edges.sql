{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

with pairs as (
    select
        snapshot_id as pair_id,
        snapshot_id
    from {{ ref('dbt_ripple', 'int_consecutive_snapshots') }}

    union all

    -- A column that is gone has its readers on the old side only.
    select
        snapshot_id as pair_id,
        base_snapshot_id as snapshot_id
    from {{ ref('dbt_ripple', 'int_consecutive_snapshots') }}
),

moved as (
    select * from {{ ref('dbt_ripple', 'int_moved_definitions') }}
),

edges as (
    select
        snapshot_id,
        parent_id,
        parent_column,
        child_id,
        child_column
    from {{ ref('dbt_ripple', 'stg_ripple__column_edges') }}
    where parent_id != child_id

    union all

    select
        snapshot_id,
        unique_id as parent_id,
        column_name as parent_column,
        test_id as child_id,
        '*rows*' as child_column
    from {{ ref('dbt_ripple', 'stg_ripple__test_columns') }}
),

between_moved as (
    select distinct
        pairs.pair_id as snapshot_id,
        parents.unique_id as parent_id,
        parents.column_name as parent_column,
        children.unique_id as child_id,
        children.column_name as child_column
    from pairs
    inner join edges on pairs.snapshot_id = edges.snapshot_id
    inner join moved as parents
        on
            pairs.pair_id = parents.snapshot_id
            and edges.parent_id = parents.unique_id
            and lower(edges.parent_column) = parents.column_name
    inner join moved as children
        on
            pairs.pair_id = children.snapshot_id
            and edges.child_id = children.unique_id
            and lower(edges.child_column) = children.column_name
),

final as (
    select
        snapshot_id,
        parent_id,
        parent_column,
        child_id,
        child_column
    from between_moved
)

select * from final
