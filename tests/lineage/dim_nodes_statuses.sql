-- Nodes whose analysis ended in a way nobody knows, or that could not be seen through and do not say why.
select
    snapshot_id,
    unique_id,
    analysis_status,
    analysis_reason
from {{ ref('dbt_ripple', 'dim_nodes') }}
where
    analysis_status not in ('analysed', 'opaque', 'broken', 'leaf')
    or (analysis_status in ('opaque', 'broken') and analysis_reason is null)
