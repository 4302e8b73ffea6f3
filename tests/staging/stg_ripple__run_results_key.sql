{{ bad_keys(ref('dbt_ripple', 'stg_ripple__run_results'), ['snapshot_id', 'invocation_id', 'unique_id']) }}
