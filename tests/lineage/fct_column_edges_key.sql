{{ bad_keys(
    ref('dbt_ripple', 'fct_column_edges'),
    ['snapshot_id', 'parent_id', 'parent_column', 'child_id', 'child_column', 'type', 'subtype', 'masking']
) }}
