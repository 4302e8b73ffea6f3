{{ bad_keys(ref('dbt_ripple', 'dim_snapshots'), ['snapshot_id']) }}
