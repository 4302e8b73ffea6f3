{{ bad_keys(
    ref('dbt_ripple', 'stg_ripple__test_columns'), ['snapshot_id', 'test_id', 'unique_id', 'column_name']
) }}
