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
{%- set closure = ref('dbt_ripple', 'ripple_fct_node_closure') -%}
{%- set crossings = ref('dbt_ripple', 'ripple_fct_cross_project_edges') -%}
{%- set pairs = [] -%}
{%- if node is not none -%}
    {%- for snapshot_id, unique_id in dbt_ripple.start_nodes(dbt_ripple.asked_nodes(node) if node is string else node) -%}
        {%- do pairs.append({'snapshot_id': snapshot_id, 'unique_id': unique_id}) -%}
    {%- endfor -%}
{%- endif -%}
{%- set within %}
select
    closure.snapshot_id as start_snapshot_id,
    closure.{{ near }} as start_id,
    closure.snapshot_id,
    closure.{{ far }} as unique_id,
    closure.depth
from {{ closure }} as closure
{%- if node is not none %}
where {{ dbt_ripple.is_among_nodes(pairs, 'closure.snapshot_id', 'closure.' ~ near) }}
{%- endif %}
{%- endset -%}
{%- set way = namespace(sql=within) -%}
{%- for _ in range(var('ripple_max_projects', 2) | int if dbt_ripple.projects_are_joined() else 0) -%}
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
inner join {{ crossings }} as crossings
    on
        reached.snapshot_id = crossings.{{ side }}_snapshot_id
        and reached.unique_id = crossings.{{ side }}_id
        and crossings.child_column = '*rows*'
inner join {{ closure }} as closure
    on
        crossings.{{ other_side }}_snapshot_id = closure.snapshot_id
        and crossings.{{ other_side }}_id = closure.{{ near }}
{%- endset -%}
{%- set way.sql = further -%}
{%- endfor -%}
{{ way.sql }}
{% endmacro %}
