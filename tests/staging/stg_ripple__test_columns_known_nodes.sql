-- Columns a test reads of a node that its snapshot does not have.
with test_columns as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__test_columns') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
)

select
    test_columns.snapshot_id,
    test_columns.test_id,
    test_columns.unique_id
from test_columns
left join nodes
    on
        test_columns.snapshot_id = nodes.snapshot_id
        and test_columns.unique_id = nodes.unique_id
where nodes.unique_id is null
