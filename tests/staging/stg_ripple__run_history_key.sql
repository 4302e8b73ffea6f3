{{ bad_keys(ref('dbt_ripple', 'stg_ripple__run_history'), ['invocation_id', 'unique_id']) }}
