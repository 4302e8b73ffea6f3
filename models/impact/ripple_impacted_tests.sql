{% set base_snapshot = var('ripple_base_snapshot', none) %}
{% set head_snapshot = var('ripple_head_snapshot', none) %}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
),

node_columns as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__columns') }}
),

test_columns as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__test_columns') }}
),

ranked as (
    select
        snapshot_id,
        project_name,
        -- Artifacts made later are newer, whatever the order they were loaded in.
        row_number() over (
            partition by project_name
            order by coalesce(generated_at, loaded_at) desc, loaded_at desc, snapshot_id desc
        ) as recency
    from snapshots
),

heads as (
    select * from ranked
    where {{ "recency = 1" if not head_snapshot else "snapshot_id = '" ~ head_snapshot ~ "'" }}
),

pairs as (
    select
        heads.project_name,
        bases.snapshot_id as base_snapshot_id,
        heads.snapshot_id as head_snapshot_id
    from heads
    inner join ranked as bases on heads.project_name = bases.project_name
    where
        bases.{{ "recency = heads.recency + 1" if not base_snapshot else "snapshot_id = '" ~ base_snapshot ~ "'" }}
),

-- A load of an older version has no fingerprints of tests: all of them count as changed. Else a test without one is a
-- check that collected events tell of: dbt does not run it.
data_tests as (
    select
        snapshot_id,
        unique_id,
        name,
        test_fingerprint as fingerprint,
        typed_fingerprint,
        orders_seen
    from (
        select
            *,
            max(test_fingerprint) over (partition by snapshot_id) as one_fingerprint
        from nodes
        where resource_type = 'test'
    ) as tests
    where
        test_fingerprint is not null
        or one_fingerprint is null
),

base_tests as (
    select
        pairs.head_snapshot_id,
        data_tests.unique_id,
        data_tests.fingerprint,
        data_tests.typed_fingerprint,
        data_tests.orders_seen
    from pairs
    inner join data_tests on pairs.base_snapshot_id = data_tests.snapshot_id
),

-- The relations whose rows may come in another order: where no ORDER BY stands, and where something decides it.
other_orders as (
    select
        pairs.head_snapshot_id,
        head_nodes.unique_id,
        coalesce(base_nodes.above_fingerprint, '') != coalesce(head_nodes.above_fingerprint, '') as is_open,
        coalesce(base_nodes.layout_fingerprint, '') != coalesce(head_nodes.layout_fingerprint, '')
        or (
            coalesce(base_nodes.order_fingerprint, '') != coalesce(head_nodes.order_fingerprint, '')
            -- Else what sees them has changed.
            and coalesce(base_nodes.rows_fingerprint, '') = coalesce(head_nodes.rows_fingerprint, '')
        ) as is_decided
    from pairs
    inner join nodes as head_nodes on pairs.head_snapshot_id = head_nodes.snapshot_id
    left join nodes as base_nodes
        on
            pairs.base_snapshot_id = base_nodes.snapshot_id
            and head_nodes.unique_id = base_nodes.unique_id
),

see_other_order as (
    select distinct
        tests.head_snapshot_id,
        tests.unique_id
    from (
        select
            head_snapshot_id,
            unique_id,
            orders_seen
        from base_tests

        union all

        select
            pairs.head_snapshot_id,
            data_tests.unique_id,
            data_tests.orders_seen
        from pairs
        inner join data_tests on pairs.head_snapshot_id = data_tests.snapshot_id
    ) as tests
    inner join other_orders
        on
            tests.head_snapshot_id = other_orders.head_snapshot_id
            and (
                (
                    other_orders.is_open
                    and instr(concat(tests.orders_seen, ','), concat('above:', other_orders.unique_id, ',')) > 0
                )
                or (
                    other_orders.is_decided
                    and instr(concat(tests.orders_seen, ','), concat('order:', other_orders.unique_id, ',')) > 0
                )
            )
    where
        tests.orders_seen is not null
        and (other_orders.is_open or other_orders.is_decided)
),

impacted as (
    select
        pairs.project_name,
        pairs.base_snapshot_id,
        pairs.head_snapshot_id,
        data_tests.unique_id,
        data_tests.name,
        case when base_tests.unique_id is null then 'new' else 'changed' end as change
    from pairs
    inner join data_tests on pairs.head_snapshot_id = data_tests.snapshot_id
    left join base_tests
        on
            pairs.head_snapshot_id = base_tests.head_snapshot_id
            and data_tests.unique_id = base_tests.unique_id
    left join see_other_order
        on
            pairs.head_snapshot_id = see_other_order.head_snapshot_id
            and data_tests.unique_id = see_other_order.unique_id
    where
        see_other_order.unique_id is not null
        -- Either fingerprint shows that nothing changed: a load without a catalog has another typed one.
        or (
            coalesce(data_tests.fingerprint != base_tests.fingerprint, true)
            and coalesce(data_tests.typed_fingerprint != base_tests.typed_fingerprint, true)
        )
),

vertices as (
    select
        snapshot_id,
        unique_id,
        lower(column_name) as vertex,
        fingerprint
    from node_columns

    union all

    select
        snapshot_id,
        unique_id,
        '*rows*' as vertex,
        rows_fingerprint as fingerprint
    from nodes
),

moved as (
    select
        impacted.head_snapshot_id,
        impacted.unique_id,
        count(*) as moved_reads
    from impacted
    inner join test_columns
        on
            impacted.head_snapshot_id = test_columns.snapshot_id
            and impacted.unique_id = test_columns.test_id
    inner join vertices as after_change
        on
            impacted.head_snapshot_id = after_change.snapshot_id
            and test_columns.unique_id = after_change.unique_id
            and lower(test_columns.column_name) = after_change.vertex
    left join vertices as before_change
        on
            impacted.base_snapshot_id = before_change.snapshot_id
            and after_change.unique_id = before_change.unique_id
            and after_change.vertex = before_change.vertex
    where
        before_change.fingerprint is null
        or after_change.fingerprint is null
        or after_change.fingerprint != before_change.fingerprint
    group by impacted.head_snapshot_id, impacted.unique_id
),

final as (
    select
        impacted.project_name,
        impacted.base_snapshot_id,
        impacted.head_snapshot_id,
        impacted.unique_id,
        impacted.name,
        impacted.change,
        coalesce(moved.moved_reads, 0) as moved_reads
    from impacted
    left join moved
        on
            impacted.head_snapshot_id = moved.head_snapshot_id
            and impacted.unique_id = moved.unique_id
)

select * from final
