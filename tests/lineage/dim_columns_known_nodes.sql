{{ unknown_nodes(ref('dbt_ripple', 'dim_columns'), ['unique_id']) }}
