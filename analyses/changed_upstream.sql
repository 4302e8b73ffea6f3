{{ config(enabled=part_is_on('operations')) }}

-- What changed in the last 24 hours upstream of a node (var ripple_node), nearest first: the definitions that were
-- changed there, not those that moved along.
with asked as (
    select
        nodes.snapshot_id,
        nodes.project_name,
        nodes.unique_id,
        nodes.name
    from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    where {{ node_is('nodes', var('ripple_node', none)) }}
)

select
    asked.name as asked_about,
    changes.changed_at,
    changes.git_sha,
    closure.depth,
    changes.name,
    changes.column_name,
    changes.change,
    changes.old_expression,
    changes.new_expression,
    changes.owner,
    changes.unique_id
from asked
inner join {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
    on
        asked.snapshot_id = closure.snapshot_id
        and asked.unique_id = closure.descendant_id
inner join {{ ref('dbt_ripple', 'definition_changes') }} as changes
    on
        asked.project_name = changes.project_name
        and closure.ancestor_id = changes.unique_id
where
    changes.is_origin
    and changes.changed_at >= {{ days_ago(1) }}
order by asked_about asc, changes.changed_at desc, closure.depth asc, changes.name asc, changes.column_name asc
