{#-
    What the columns that were reached read before something upstream of them was removed: in the load before each change
    since `ripple_since`, the way goes on from the same columns, and from what was asked about as it was then. As `walk`
    gives it.
-#}
{% macro walk_before(reached, nodes, column) %}
    {%- set changes, snapshots = ref('dbt_ripple', 'ripple_definition_changes'), ref('dbt_ripple', 'ripple_dim_snapshots') -%}
    {%- set starts = {} -%}
    {%- if reached and adapter.get_relation(database=changes.database, schema=changes.schema, identifier=changes.identifier) is not none -%}
        {%- set found = run_query(
            'select distinct changes.base_snapshot_id, latest.snapshot_id from ' ~ changes ~ ' as changes'
            ~ ' inner join ' ~ snapshots ~ ' as latest'
            ~ ' on changes.project_name = latest.project_name and latest.is_latest'
            ~ " where changes.is_origin and changes.change = 'removed' and changes.changed_at >= " ~ dbt_ripple.since()
        ) -%}
        {%- for base, latest in found.rows -%}
            {%- for vertex, at in reached.items() if vertex[0] == latest -%}
                {%- do starts.update({(base, vertex[1], vertex[2]): at}) -%}
            {%- endfor -%}
            {%- set then = [] -%}
            {%- for node in nodes if node.snapshot_id == latest -%}
                {%- do then.append({'snapshot_id': base, 'unique_id': node.unique_id, 'resource_type': node.resource_type}) -%}
            {%- endfor -%}
            {%- for vertex in dbt_ripple.start_columns(then, column, rows=true) if vertex not in starts -%}
                {%- do starts.update({vertex: [1, 0]}) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(dbt_ripple.walk(starts, 'upstream') if starts else {}) -%}
{% endmacro %}
