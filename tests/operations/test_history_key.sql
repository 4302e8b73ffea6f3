{{ bad_keys(ref('dbt_ripple', 'test_history'), ['invocation_id', 'unique_id']) }}
