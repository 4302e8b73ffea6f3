{{ bad_keys(ref('dbt_ripple', 'median_blast_radius'), ['project_name', 'week']) }}
