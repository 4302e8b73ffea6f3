{{ bad_keys(ref('dbt_ripple', 'lineage_coverage'), ['project_name', 'week']) }}
