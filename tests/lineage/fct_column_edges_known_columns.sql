-- Column edges whose end is neither the row set nor a column of its node. Left out: what a broken node reads, as it is
-- not there; and the columns of exposures, which no query of the project makes.
with edges as (
    select
        column_edges.snapshot_id,
        column_edges.parent_id,
        column_edges.parent_column,
        column_edges.child_id,
        column_edges.child_column,
        nodes.analysis_status as child_status,
        nodes.resource_type as child_type
    from {{ ref('dbt_ripple', 'fct_column_edges') }} as column_edges
    inner join {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
        on
            column_edges.snapshot_id = nodes.snapshot_id
            and column_edges.child_id = nodes.unique_id
),

ends as (
    select
        snapshot_id,
        parent_id as unique_id,
        parent_column as column_name
    from edges
    where child_status != 'broken' or child_status is null

    union distinct

    select
        snapshot_id,
        child_id as unique_id,
        child_column as column_name
    from edges
    where child_type != 'exposure'
)

select ends.*
from ends
left join {{ ref('dbt_ripple', 'dim_columns') }} as columns
    on
        ends.snapshot_id = columns.snapshot_id
        and ends.unique_id = columns.unique_id
        and ends.column_name = columns.column_name
where
    ends.column_name != '*rows*'
    and columns.unique_id is null
