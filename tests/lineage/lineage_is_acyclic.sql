-- Two nodes that reach each other: dbt allows no cycle, so the loaded lineage may have none.
with closure as (
    select * from {{ ref('dbt_ripple', 'fct_node_closure') }}
)

select
    there.snapshot_id,
    there.ancestor_id as one_id,
    there.descendant_id as other_id
from closure as there
inner join closure as back
    on
        there.snapshot_id = back.snapshot_id
        and there.ancestor_id = back.descendant_id
        and there.descendant_id = back.ancestor_id
where there.ancestor_id < there.descendant_id
