{{ bad_keys(ref('dbt_ripple', 'certified_path_integrity'), ['project_name', 'week', 'unique_id']) }}
