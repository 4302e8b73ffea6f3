{{ bad_keys(ref('dbt_ripple', 'lineage_kpis'), ['project_name', 'week']) }}
