{{ bad_keys(ref('dbt_ripple', 'slo_status'), ['project_name', 'target_name', 'unique_id']) }}
