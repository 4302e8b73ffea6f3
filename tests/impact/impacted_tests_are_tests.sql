-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
-- Impacted tests that are there twice, and those that the load they are said of does not have as tests.
with impacted as (
    select * from {{ ref('dbt_ripple', 'ripple_impacted_tests') }}
),

tests as (
    select * from {{ source('ripple_raw', 'nodes') }}
    where resource_type = 'test'
)

select
    impacted.base_snapshot_id,
    impacted.head_snapshot_id,
    impacted.unique_id
from impacted
left join tests
    on
        impacted.head_snapshot_id = tests.snapshot_id
        and impacted.unique_id = tests.unique_id
group by impacted.base_snapshot_id, impacted.head_snapshot_id, impacted.unique_id
having count(*) > 1 or count(tests.unique_id) = 0
{% endif %}
