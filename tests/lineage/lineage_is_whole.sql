-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
-- One query of many checks: of each, what breaks it, by its name.
with nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

columns as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
),

edges as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_edges') }}
),

-- As they are loaded: the model adds an expression to each, a join that costs as much as a check.
column_edges as (
    select column_edges.*
    from {{ source('ripple_raw', 'column_edges') }} as column_edges
    inner join {{ ref('dbt_ripple', 'ripple_dim_snapshots') }} as snapshots
        on
            column_edges.snapshot_id = snapshots.snapshot_id
            and snapshots.is_latest
),

closure as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_node_closure') }}
),

-- What comes from another project is known there.
own_pii_columns as (  -- noqa: ST03
    select * from {{ ref('dbt_ripple', 'ripple_pii_columns') }}
    where source_project = project_name
),

test_columns as (
    select test_columns.*
    from {{ source('ripple_raw', 'test_columns') }} as test_columns
    inner join {{ ref('dbt_ripple', 'ripple_dim_snapshots') }} as snapshots
        on
            test_columns.snapshot_id = snapshots.snapshot_id
            and snapshots.is_latest
),

-- What else is wrong with a row, seen by itself.
rows_of_snapshots as (
    select
        'dim_snapshots_says_what_and_when' as check_name,
        snapshot_id as found
    from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where
        project_name is null
        or loaded_at is null
),

rows_of_status as (
    select
        'lineage_status_is_known' as check_name,
        {{ in_words(['status', 'message']) }} as found
    from {{ ref('dbt_ripple', 'ripple_lineage_status') }}
    where
        status is null
        or status not in ('empty', 'stale', 'behind', 'loaded')
        or message is null
),

-- Nodes without a name, or of which it is not said what they are; and those whose analysis ended in a way nobody knows,
-- or that could not be analysed and do not say why.
rows_of_nodes as (
    select
        case
            when name is null or resource_type is null or asset_type is null then 'dim_nodes_kinds'
            else 'dim_nodes_statuses'
        end as check_name,
        {{ in_words(['snapshot_id', 'unique_id', 'analysis_status']) }} as found
    from nodes
    where
        name is null
        or resource_type is null
        or asset_type is null
        or analysis_status is null
        or analysis_status not in ('analysed', 'opaque', 'broken', 'leaf')
        or (analysis_status in ('opaque', 'broken') and analysis_reason is null)
),

-- Column edges of a kind OpenLineage does not know.
rows_of_column_edges as (
    select
        'fct_column_edges_kinds' as check_name,
        {{ in_words(['snapshot_id', 'parent_id', 'child_id', 'type', 'subtype']) }} as found
    from column_edges
    where
        not (
            (type = 'DIRECT' and subtype in ('IDENTITY', 'TRANSFORMATION', 'AGGREGATION'))
            or (type = 'INDIRECT' and subtype in ('JOIN', 'FILTER', 'GROUP_BY', 'SORT', 'WINDOW', 'CONDITIONAL'))
        )
        or type is null
        or subtype is null
),

-- Column edges whose end is neither the row set nor a column of its node.
ends as (
    select
        snapshot_id,
        parent_id as unique_id,
        parent_column as column_name
    from column_edges

    union all

    select
        snapshot_id,
        child_id as unique_id,
        child_column as column_name
    from column_edges
),

unknown_columns as (
    select
        'fct_column_edges_known_columns' as check_name,
        {{ in_words(['ends.snapshot_id', 'ends.unique_id', 'ends.column_name']) }} as found
    from ends
    left join columns
        on
            ends.snapshot_id = columns.snapshot_id
            and ends.unique_id = columns.unique_id
            and ends.column_name = columns.column_name
    where
        ends.column_name != '*rows*'
        and columns.unique_id is null
),

-- Pairs that should be in the closure: nodes with themselves, and edges; not those of tests, below which nothing lies.
pairs_to_hold as (
    select
        snapshot_id,
        unique_id as ancestor_id,
        unique_id as descendant_id,
        0 as depth
    from nodes
    where resource_type not in ('test', 'unit_test')

    union all

    select
        edges.snapshot_id,
        edges.parent_id as ancestor_id,
        edges.child_id as descendant_id,
        1 as depth
    from edges
    inner join nodes
        on
            edges.snapshot_id = nodes.snapshot_id
            and edges.child_id = nodes.unique_id
    where nodes.resource_type not in ('test', 'unit_test')
),

pairs_held as (
    select * from closure
    where depth in (0, 1)
),

-- They are the pairs of these depths, no more and no fewer.
other_pairs as (
    select
        case
            when coalesce(pairs_to_hold.depth, pairs_held.depth) = 0 then 'fct_node_closure_holds_itself'
            else 'fct_node_closure_holds_edges'
        end as check_name,
        {{ in_words([
            'coalesce(pairs_to_hold.snapshot_id, pairs_held.snapshot_id)',
            'coalesce(pairs_to_hold.ancestor_id, pairs_held.ancestor_id)',
            'coalesce(pairs_to_hold.descendant_id, pairs_held.descendant_id)',
        ]) }} as found
    from pairs_to_hold
    full outer join pairs_held
        on
            pairs_to_hold.snapshot_id = pairs_held.snapshot_id
            and pairs_to_hold.ancestor_id = pairs_held.ancestor_id
            and pairs_to_hold.descendant_id = pairs_held.descendant_id
            and pairs_to_hold.depth = pairs_held.depth
    where
        pairs_to_hold.ancestor_id is null
        or pairs_held.ancestor_id is null
),

-- Two nodes that reach each other: dbt allows no cycle, so the loaded lineage may have none.
cycles as (
    select
        'lineage_is_acyclic' as check_name,
        {{ in_words(['there.snapshot_id', 'there.ancestor_id', 'there.descendant_id']) }} as found
    from closure as there
    inner join closure as back
        on
            there.snapshot_id = back.snapshot_id
            and there.ancestor_id = back.descendant_id
            and there.descendant_id = back.ancestor_id
    where there.ancestor_id < there.descendant_id
),

repeated as (
    {{ bad_keys({
        'dim_snapshots_key': (ref('dbt_ripple', 'ripple_dim_snapshots'), ['snapshot_id']),
        'dim_nodes_key': ('nodes', ['snapshot_id', 'unique_id']),
        'dim_columns_key': ('columns', ['snapshot_id', 'unique_id', 'column_name']),
        'fct_edges_key': ('edges', ['snapshot_id', 'parent_id', 'child_id']),
        'fct_column_edges_key': (ref('dbt_ripple', 'ripple_fct_column_edges'), [
            'snapshot_id', 'parent_id', 'parent_column', 'child_id', 'child_column', 'type', 'subtype', 'masking'
        ]),
        'fct_node_closure_key': ('closure', ['snapshot_id', 'ancestor_id', 'descendant_id']),
        'fct_cross_project_edges_key': (
            ref('dbt_ripple', 'ripple_fct_cross_project_edges'),
            ['parent_snapshot_id', 'parent_id', 'parent_column', 'child_snapshot_id', 'child_id', 'child_column']
        ),
        'pii_columns_key': (ref('dbt_ripple', 'ripple_pii_columns'), ['snapshot_id', 'unique_id', 'column_name']),
        'test_columns_key': ('test_columns', ['snapshot_id', 'test_id', 'unique_id', 'column_name']),
    }) | indent(4) }}
),

unlisted_nodes as (
    {{ unknown_nodes({
        'dim_columns_known_nodes': ('columns', 'unique_id'),
        'fct_edges_known_parents': ('edges', 'parent_id'),
        'fct_edges_known_children': ('edges', 'child_id'),
        'fct_column_edges_known_parents': ('column_edges', 'parent_id'),
        'fct_column_edges_known_children': ('column_edges', 'child_id'),
        'fct_node_closure_known_ancestors': ('closure', 'ancestor_id'),
        'fct_node_closure_known_descendants': ('closure', 'descendant_id'),
        'pii_columns_known_sources': ('own_pii_columns', 'source_id'),
        'test_columns_known_nodes': ('test_columns', 'unique_id'),
    }) | indent(4) }}
)
{% for check in [
    'rows_of_snapshots', 'rows_of_status', 'rows_of_nodes', 'rows_of_column_edges', 'unknown_columns', 'other_pairs',
    'cycles', 'repeated', 'unlisted_nodes'
] %}
select * from {{ check }}
{{ 'union all' if not loop.last }}
{%- endfor %}
{% endif %}
