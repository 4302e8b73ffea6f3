{{ unknown_nodes(ref('dbt_ripple', 'pii_columns'), ['unique_id', 'source_id']) }}
