-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
{%- set loads = loads_shown() %}
-- One query of many checks: of each, what breaks it, by its name. Views are read past, by the loads that they show.
with nodes as (
    select * from {{ as_shown('ripple_dim_nodes', 'nodes', loads) }}
),

columns as (
    select * from {{ as_shown('ripple_dim_columns', 'columns', loads) }}
),

edges as (
    select * from {{ as_shown('ripple_fct_edges', 'edges', loads) }}
),

column_edges as (
    select * from {{ as_shown('ripple_fct_column_edges', 'column_edges', loads) }}
),

closure as (
    select * from {{ as_shown('ripple_fct_node_closure', 'node_closure', loads) }}
),

-- What comes from another project is known there.
pii_columns as (
    select * from {{ ref('dbt_ripple', 'ripple_pii_columns') }}
),

own_pii_columns as (  -- noqa: ST03
    select * from pii_columns
    where source_project = project_name
),

test_columns as (
    select * from {{ source('ripple_raw', 'test_columns') }}
    where snapshot_id in ({{ loads }})
),

-- ripple_impacted_tests lists one twice, if one of the loads that it compares does.
tests_compared as (  -- noqa: ST03
    select
        snapshot_id,
        unique_id
    from {{ source('ripple_raw', 'nodes') }}
    where
        resource_type = 'test'
        and snapshot_id in ({{ loads_shown(2) }})
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

pairs as (
    select
        *,
        1 as is_needed,
        0 as is_there
    from pairs_to_hold

    union all

    select
        snapshot_id,
        ancestor_id,
        descendant_id,
        depth,
        0 as is_needed,
        1 as is_there
    from closure
    where depth in (0, 1)
),

-- Ends of column edges, and the columns that there are.
ends as (
    select
        snapshot_id,
        parent_id as unique_id,
        parent_column as column_name,
        1 as is_needed,
        0 as is_there
    from column_edges
    where parent_column != '*rows*'

    union all

    select
        snapshot_id,
        child_id as unique_id,
        child_column as column_name,
        1 as is_needed,
        0 as is_there
    from column_edges
    where child_column != '*rows*'

    union all

    select
        snapshot_id,
        unique_id,
        column_name,
        0 as is_needed,
        1 as is_there
    from columns
),

-- All that is grouped is grouped at once: what a query costs here is its steps.
claims as (
    -- Each key is there once, and whole.
    select
        check_name,
        found,
        'once' as rule,
        lacks_a_part as is_needed,
        1 as is_there
    from (
        {{ rows_of_keys({
            'dim_snapshots_key': (ref('dbt_ripple', 'ripple_dim_snapshots'), ['snapshot_id']),
            'dim_nodes_key': ('nodes', ['snapshot_id', 'unique_id']),
            'dim_columns_key': ('columns', ['snapshot_id', 'unique_id', 'column_name']),
            'fct_edges_key': ('edges', ['snapshot_id', 'parent_id', 'child_id']),
            'fct_column_edges_key': ('column_edges', [
                'snapshot_id', 'parent_id', 'parent_column', 'child_id', 'child_column', 'type', 'subtype', 'masking'
            ]),
            'fct_node_closure_key': ('closure', ['snapshot_id', 'ancestor_id', 'descendant_id']),
            'fct_cross_project_edges_key': (
                ref('dbt_ripple', 'ripple_fct_cross_project_edges'),
                ['parent_snapshot_id', 'parent_id', 'parent_column', 'child_snapshot_id', 'child_id', 'child_column']
            ),
            'pii_columns_key': ('pii_columns', ['snapshot_id', 'unique_id', 'column_name']),
            'test_columns_key': ('test_columns', ['snapshot_id', 'test_id', 'unique_id', 'column_name']),
            'impacted_tests_key': ('tests_compared', ['snapshot_id', 'unique_id']),
        }) | indent(8) }}
    ) as keys

    union all

    -- The closure holds these pairs of these depths, no more and no fewer.
    select
        case when depth = 0 then 'fct_node_closure_holds_itself' else 'fct_node_closure_holds_edges' end as check_name,
        {{ in_words(['snapshot_id', 'ancestor_id', 'descendant_id']) }} as found,
        'both' as rule,
        is_needed,
        is_there
    from pairs

    union all

    -- The end of a column edge is the row set, or a column of its node.
    select
        'fct_column_edges_known_columns' as check_name,
        {{ in_words(['snapshot_id', 'unique_id', 'column_name']) }} as found,
        'there' as rule,
        is_needed,
        is_there
    from ends

    union all

    -- Two nodes that reach each other: dbt allows no cycle, so the loaded lineage may have none.
    select
        'lineage_is_acyclic' as check_name,
        {{ in_words([
            'snapshot_id', 'least(ancestor_id, descendant_id)', 'greatest(ancestor_id, descendant_id)'
        ]) }} as found,
        'not both' as rule,
        case when ancestor_id < descendant_id then 1 else 0 end as is_needed,
        case when ancestor_id > descendant_id then 1 else 0 end as is_there
    from closure
    where ancestor_id != descendant_id
),

broken_claims as (
    select
        check_name,
        found
    from claims
    group by check_name, found, rule
    having
        case rule
            when 'once' then count(*) > 1 or max(is_needed) = 1
            when 'both' then max(is_needed) = 0 or max(is_there) = 0
            when 'there' then max(is_needed) = 1 and max(is_there) = 0
            else max(is_needed) = 1 and max(is_there) = 1
        end
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
{% for check in ['rows_of_snapshots', 'rows_of_nodes', 'rows_of_column_edges', 'broken_claims', 'unlisted_nodes'] %}
select * from {{ check }}
{{ 'union all' if not loop.last }}
{%- endfor %}
{% endif %}
