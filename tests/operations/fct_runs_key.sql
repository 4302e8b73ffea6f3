{{ bad_keys(ref('dbt_ripple', 'fct_runs'), ['invocation_id', 'unique_id']) }}
