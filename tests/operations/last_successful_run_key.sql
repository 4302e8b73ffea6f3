{{ bad_keys(ref('dbt_ripple', 'last_successful_run'), ['project_name', 'target_name', 'unique_id']) }}
