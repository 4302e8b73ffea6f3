-- noqa: disable=LT02
{{ config(file_format=var('ripple_file_format', 'parquet')) }}
{#- Without several projects there is nothing to join. -#}
{%- if projects_are_joined() or not execute %}

-- What one project builds and another one declares as a source: the same relation_key. A model without a file is one
-- that a plugin took over from another project (dbt's cross-project ref): the node of the same unique_id there.
with nodes as (
    select
        *,
        coalesce(
            resource_type = 'model' and path is null and package_name != project_name,
            false
        ) as is_taken_over
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

readers as (
    select
        snapshot_id,
        project_name,
        unique_id,
        case
            when is_taken_over then concat('node ', package_name, ' ', unique_id)
            else concat('relation ', relation_key)
        end as called
    from nodes
    where
        is_taken_over
        or (resource_type = 'source' and relation_key is not null)
),

snapshots as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
),

-- Of all loads: where the last one was for another target, with other schemas, an earlier one tells what was built.
built as (
    select
        snapshots.project_name,
        snapshots.is_latest,
        coalesce(snapshots.generated_at, snapshots.loaded_at) as seen_at,
        loaded_nodes.snapshot_id,
        loaded_nodes.unique_id,
        loaded_nodes.relation_key
    from {{ ref('dbt_ripple', 'stg_ripple__nodes') }} as loaded_nodes
    inner join snapshots on loaded_nodes.snapshot_id = snapshots.snapshot_id
    where
        loaded_nodes.resource_type in ('model', 'seed', 'snapshot')
        and loaded_nodes.relation_key is not null
        and not (loaded_nodes.path is null and loaded_nodes.package_name != snapshots.project_name)
),

built_as as (
    select
        *,
        concat('relation ', relation_key) as called
    from built

    union all

    select
        *,
        concat('node ', project_name, ' ', unique_id) as called
    from built
),

found as (
    select
        readers.snapshot_id,
        readers.project_name,
        readers.unique_id,
        built.project_name as parent_project,
        built.unique_id as parent_id,
        row_number() over (
            partition by readers.snapshot_id, readers.unique_id
            order by
                case when built.is_latest then 0 else 1 end asc,
                built.seen_at desc,
                built.project_name asc,
                built.unique_id asc
        ) as preference
    from readers
    inner join built_as as built
        on
            readers.called = built.called
            and readers.project_name != built.project_name
),

-- What it is in the last load: a model that is gone builds nothing any more.
joined as (
    select
        builders.snapshot_id as parent_snapshot_id,
        found.parent_project,
        found.parent_id,
        found.snapshot_id as child_snapshot_id,
        found.project_name as child_project,
        found.unique_id as child_id
    from found
    inner join nodes as builders
        on
            found.parent_project = builders.project_name
            and found.parent_id = builders.unique_id
    where found.preference = 1
),

columns as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
),

final as (
    select
        joined.parent_snapshot_id,
        joined.parent_project,
        joined.parent_id,
        parents.column_name as parent_column,
        joined.child_snapshot_id,
        joined.child_project,
        joined.child_id,
        children.column_name as child_column
    from joined
    inner join columns as children
        on
            joined.child_snapshot_id = children.snapshot_id
            and joined.child_id = children.unique_id
    inner join columns as parents
        on
            joined.parent_snapshot_id = parents.snapshot_id
            and joined.parent_id = parents.unique_id
            and lower(children.column_name) = lower(parents.column_name)

    union all

    select
        parent_snapshot_id,
        parent_project,
        parent_id,
        '*rows*' as parent_column,
        child_snapshot_id,
        child_project,
        child_id,
        '*rows*' as child_column
    from joined
)

select * from final
{%- else %}
with final as (
    select
        snapshot_id as parent_snapshot_id,
        project_name as parent_project,
        project_name as parent_id,
        project_name as parent_column,
        snapshot_id as child_snapshot_id,
        project_name as child_project,
        project_name as child_id,
        project_name as child_column
    from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where false
)

select * from final
{%- endif %}
