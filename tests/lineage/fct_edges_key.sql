{{ bad_keys(ref('dbt_ripple', 'fct_edges'), ['snapshot_id', 'parent_id', 'child_id']) }}
