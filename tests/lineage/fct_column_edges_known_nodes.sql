{{ unknown_nodes(ref('dbt_ripple', 'fct_column_edges'), ['parent_id', 'child_id']) }}
