{{ bad_keys(ref('dbt_ripple', 'unknown_downstreams'), ['project_name', 'week', 'unique_id']) }}
