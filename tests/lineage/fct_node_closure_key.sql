{{ bad_keys(ref('dbt_ripple', 'fct_node_closure'), ['snapshot_id', 'ancestor_id', 'descendant_id']) }}
