-- Columns a test reads of a node that its snapshot does not have.
select
    test_columns.snapshot_id,
    test_columns.test_id,
    test_columns.unique_id
from {{ ref('dbt_ripple', 'stg_ripple__test_columns') }} as test_columns
left join {{ ref('dbt_ripple', 'stg_ripple__nodes') }} as nodes
    on
        test_columns.snapshot_id = nodes.snapshot_id
        and test_columns.unique_id = nodes.unique_id
where nodes.unique_id is null
