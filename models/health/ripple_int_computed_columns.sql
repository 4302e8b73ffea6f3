{{ config(enabled=part_is_on('health')) }}

with nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
    where
        resource_type = 'model'
        and analysis_status = 'analysed'
        and (package_name is null or package_name != 'dbt_ripple')
),

columns as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
),

edges as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_column_edges') }}
),

-- Who reads its own rows of an earlier run has other values than its twin.
self_readers as (
    select distinct
        snapshot_id,
        child_id
    from edges
    where parent_id = child_id
),

-- A constant reads nothing, and a column that is passed on is defined where it comes from.
made as (
    select
        snapshot_id,
        child_id,
        lower(child_column) as column_name
    from edges
    where child_column != '*rows*'
    group by snapshot_id, child_id, lower(child_column)
    having max(case when type = 'DIRECT' and subtype = 'IDENTITY' and parent_column != '*rows*' then 1 else 0 end) = 0
),

-- Where relations are joined, other rows may be other pairs, and a value made of a pair another one.
joined as (
    select
        snapshot_id,
        child_id
    from edges
    where child_column = '*rows*'
    group by snapshot_id, child_id
    having
        max(case when subtype = 'JOIN' then 1 else 0 end) = 1
        or count(distinct case when parent_column = '*rows*' then parent_id end) > 1
),

computed as (
    select
        nodes.snapshot_id,
        nodes.project_name,
        nodes.unique_id,
        nodes.name as node_name,
        nodes.owner,
        nodes.canonical,
        nodes.certified,
        nodes.rows_fingerprint,
        columns.column_name,
        columns.fingerprint,
        columns.expression,
        columns.is_repeatable,
        joined.child_id is not null as is_joined
    from nodes
    inner join columns
        on
            nodes.snapshot_id = columns.snapshot_id
            and nodes.unique_id = columns.unique_id
    inner join made
        on
            nodes.snapshot_id = made.snapshot_id
            and nodes.unique_id = made.child_id
            and lower(columns.column_name) = made.column_name
    left join self_readers
        on
            nodes.snapshot_id = self_readers.snapshot_id
            and nodes.unique_id = self_readers.child_id
    left join joined
        on
            nodes.snapshot_id = joined.snapshot_id
            and nodes.unique_id = joined.child_id
    where
        self_readers.child_id is null
        and columns.fingerprint is not null
),

final as (
    select
        snapshot_id,
        project_name,
        unique_id,
        node_name,
        owner,
        canonical,
        certified,
        rows_fingerprint,
        column_name,
        fingerprint,
        expression,
        is_repeatable,
        is_joined
    from computed
)

select * from final
