{{ bad_keys(ref('dbt_ripple', 'definition_changes'), ['snapshot_id', 'unique_id', 'column_name']) }}
