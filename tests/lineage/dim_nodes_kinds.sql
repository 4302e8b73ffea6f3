-- Nodes without a name, or of which it is not said what they are.
select
    snapshot_id,
    unique_id
from {{ ref('dbt_ripple', 'dim_nodes') }}
where
    name is null
    or resource_type is null
    or asset_type is null
