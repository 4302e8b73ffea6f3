{{ bad_keys(ref('dbt_ripple', 'dim_nodes'), ['snapshot_id', 'unique_id']) }}
