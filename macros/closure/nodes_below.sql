{#-
    What is downstream of a node or of what a test reads, itself included: where it stood and how far. Where a source of
    another project is a relation that is reached, the way goes on there.
-#}
{% macro nodes_below(node) %}
{{- dbt_ripple.nodes_in_direction(node, 'ancestor_id', 'descendant_id', 'parent', 'child') }}
{% endmacro %}


{#- And what is upstream. -#}
{% macro nodes_upstream(node) %}
{{- dbt_ripple.nodes_in_direction(node, 'descendant_id', 'ancestor_id', 'child', 'parent') }}
{% endmacro %}


{% macro nodes_in_direction(node, near, far, side, other_side) %}
{%- set within %}
select
    starts.snapshot_id as start_snapshot_id,
    starts.unique_id as start_id,
    closure.snapshot_id,
    closure.{{ far }} as unique_id,
    closure.depth
from {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
inner join ({{ dbt_ripple.nodes_to_start_from(node) }}) as starts
    on
        closure.snapshot_id = starts.snapshot_id
        and closure.{{ near }} = starts.unique_id
{%- endset -%}
{%- set way = namespace(sql=within) -%}
{%- for _ in range(var('ripple_max_projects', 2) | int) -%}
{%- set further %}
{{ within }}
union
select
    reached.start_snapshot_id,
    reached.start_id,
    closure.snapshot_id,
    closure.{{ far }} as unique_id,
    reached.depth + 1 + closure.depth as depth
from ({{ way.sql }}) as reached
inner join {{ ref('dbt_ripple', 'fct_cross_project_edges') }} as crossings
    on
        reached.snapshot_id = crossings.{{ side }}_snapshot_id
        and reached.unique_id = crossings.{{ side }}_id
        and crossings.child_column = '*rows*'
inner join {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
    on
        crossings.{{ other_side }}_snapshot_id = closure.snapshot_id
        and crossings.{{ other_side }}_id = closure.{{ near }}
{%- endset -%}
{%- set way.sql = further -%}
{%- endfor -%}
{{ way.sql }}
{% endmacro %}
