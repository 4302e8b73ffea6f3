-- Impacted tests that the load they are said of does not have as tests.
select
    impacted.head_snapshot_id,
    impacted.unique_id
from {{ ref('dbt_ripple', 'impacted_tests') }} as impacted
left join {{ ref('dbt_ripple', 'stg_ripple__nodes') }} as nodes
    on
        impacted.head_snapshot_id = nodes.snapshot_id
        and impacted.unique_id = nodes.unique_id
where
    nodes.unique_id is null
    or nodes.resource_type != 'test'
