{{ bad_keys(ref('dbt_ripple', 'stg_ripple__pii_columns'), ['snapshot_id', 'unique_id', 'column_name']) }}
