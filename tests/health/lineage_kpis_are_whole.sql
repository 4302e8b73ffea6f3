-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
-- Figures that are there twice, and shares that are none. What ripple_lineage_kpis joins it has twice where that has it
-- twice.
select
    {{ in_words(['project_name', 'week']) }} as found
from {{ ref('dbt_ripple', 'ripple_lineage_kpis') }}
group by project_name, week
having
    count(*) > 1
    or project_name is null
    or week is null
    or min(node_coverage) < 0
    or max(node_coverage) > 1
    or min(tier1_node_coverage) < 0
    or max(tier1_node_coverage) > 1
    or min(tier1_column_coverage) < 0
    or max(tier1_column_coverage) > 1
    or min(certified_path_integrity) < 0
    or max(certified_path_integrity) > 1
    or min(mttr_minutes) < 0
{% endif %}
