{{ bad_keys(ref('dbt_ripple', 'incidents'), ['project_name', 'target_name', 'unique_id', 'opened_at']) }}
