{{ bad_keys(ref('dbt_ripple', 'impacted_tests'), ['base_snapshot_id', 'head_snapshot_id', 'unique_id']) }}
