-- Shares that are none.
select
    project_name,
    week
from {{ ref('dbt_ripple', 'lineage_kpis') }}
where
    node_coverage not between 0 and 1
    or tier1_column_coverage not between 0 and 1
    or certified_path_integrity not between 0 and 1
    or mttr_minutes < 0
