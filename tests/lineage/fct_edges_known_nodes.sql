{{ unknown_nodes(ref('dbt_ripple', 'fct_edges'), ['parent_id', 'child_id']) }}
