-- Column edges whose end is neither the row set nor a column of its node.
with column_edges as (
    select * from {{ ref('dbt_ripple', 'fct_column_edges') }}
),

columns as (
    select * from {{ ref('dbt_ripple', 'dim_columns') }}
),

ends as (
    select
        snapshot_id,
        parent_id as unique_id,
        parent_column as column_name
    from column_edges

    union distinct

    select
        snapshot_id,
        child_id as unique_id,
        child_column as column_name
    from column_edges
)

select ends.*
from ends
left join columns
    on
        ends.snapshot_id = columns.snapshot_id
        and ends.unique_id = columns.unique_id
        and ends.column_name = columns.column_name
where
    ends.column_name != '*rows*'
    and columns.unique_id is null
