{{ bad_keys(ref('dbt_ripple', 'dim_columns'), ['snapshot_id', 'unique_id', 'column_name']) }}
