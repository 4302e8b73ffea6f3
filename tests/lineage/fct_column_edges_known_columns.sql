-- Column edges whose end is neither the row set nor a column of its node. A broken node reads columns that are not
-- there, and consumers outside the project (exposures) have columns that no query of ours makes.
with ends as (
    select
        snapshot_id,
        parent_id as unique_id,
        parent_column as column_name
    from {{ ref('dbt_ripple', 'fct_column_edges') }}
    where child_id not in (
        select unique_id from {{ ref('dbt_ripple', 'dim_nodes') }} where analysis_status = 'broken'
    )

    union

    select
        snapshot_id,
        child_id as unique_id,
        child_column as column_name
    from {{ ref('dbt_ripple', 'fct_column_edges') }}
    where child_id not in (
        select unique_id from {{ ref('dbt_ripple', 'dim_nodes') }} where resource_type = 'exposure'
    )
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
