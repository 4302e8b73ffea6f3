{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

with pairs as (
    select
        snapshot_id as pair_id,
        snapshot_id
    from {{ ref('dbt_ripple', 'ripple_int_consecutive_snapshots') }}

    union all

    -- A column that is gone has its readers on the old side only.
    select
        snapshot_id as pair_id,
        base_snapshot_id as snapshot_id
    from {{ ref('dbt_ripple', 'ripple_int_consecutive_snapshots') }}
),

moved as (
    select * from {{ ref('dbt_ripple', 'ripple_int_moved_definitions') }}
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

-- An aggregate or a window is made of the rows it runs over, which no edge says.
over_rows as (
    select
        columns_moved.snapshot_id,
        columns_moved.unique_id as parent_id,
        rows_moved.column_name as parent_column,
        columns_moved.unique_id as child_id,
        columns_moved.column_name as child_column
    from moved as columns_moved
    inner join moved as rows_moved
        on
            columns_moved.snapshot_id = rows_moved.snapshot_id
            and columns_moved.unique_id = rows_moved.unique_id
            and rows_moved.column_name = '*rows*'
    left join between_moved
        on
            columns_moved.snapshot_id = between_moved.snapshot_id
            and columns_moved.unique_id = between_moved.child_id
            and columns_moved.column_name = between_moved.child_column
    where
        columns_moved.column_name != '*rows*'
        and columns_moved.change = 'redefined'
        and columns_moved.old_own_fingerprint = columns_moved.new_own_fingerprint
        and between_moved.child_id is null
),

final as (
    select
        snapshot_id,
        parent_id,
        parent_column,
        child_id,
        child_column
    from between_moved

    union all

    select
        snapshot_id,
        parent_id,
        parent_column,
        child_id,
        child_column
    from over_rows
)

select * from final
