{{ bad_keys(ref('dbt_ripple', 'contract_violations'), ['found_in', 'unique_id', 'column_name', 'violation']) }}
