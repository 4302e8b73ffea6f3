{{ unknown_nodes(ref('dbt_ripple', 'fct_node_closure'), ['ancestor_id', 'descendant_id']) }}
