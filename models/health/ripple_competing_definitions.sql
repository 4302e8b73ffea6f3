{{ config(enabled=part_is_on('health')) }}

with metrics as (
    select
        nodes.snapshot_id,
        nodes.project_name,
        nodes.unique_id,
        nodes.name as node_name,
        nodes.owner,
        nodes.canonical,
        nodes.label,
        columns.column_name,
        columns.fingerprint,
        columns.expression
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
    inner join {{ ref('dbt_ripple', 'ripple_dim_columns') }} as columns
        on
            nodes.snapshot_id = columns.snapshot_id
            and nodes.unique_id = columns.unique_id
    where
        nodes.resource_type = 'metric'
        and columns.fingerprint is not null
),

-- What each is called: a column of a canonical or certified model by its name, a metric by its name and its label.
named as (
    select
        snapshot_id,
        project_name,
        unique_id,
        node_name,
        owner,
        canonical,
        column_name,
        fingerprint,
        expression,
        concat('column ', lower(column_name)) as called
    from {{ ref('dbt_ripple', 'ripple_int_computed_columns') }}
    where
        canonical
        or certified

    union all

    select
        snapshot_id,
        project_name,
        unique_id,
        node_name,
        owner,
        canonical,
        column_name,
        fingerprint,
        expression,
        concat('metric ', lower(node_name)) as called
    from metrics

    -- One whose label is its name is called so once.
    union distinct

    select
        snapshot_id,
        project_name,
        unique_id,
        node_name,
        owner,
        canonical,
        column_name,
        fingerprint,
        expression,
        concat('metric ', lower(trim(label))) as called
    from metrics
    where label is not null
),

computed as (
    select
        *,
        row_number() over (
            partition by snapshot_id, called
            order by case when canonical then 0 else 1 end, unique_id
        ) as place
    from named
),

found as (
    select distinct
        others.snapshot_id,
        others.project_name,
        others.unique_id,
        others.node_name,
        others.owner,
        others.column_name,
        others.expression,
        others.canonical,
        firsts.unique_id as other_id,
        firsts.node_name as other_name,
        firsts.owner as other_owner,
        firsts.expression as other_expression,
        firsts.canonical as other_canonical,
        case
            when others.canonical then 'both are canonical'
            when firsts.canonical then concat(firsts.node_name, ' is canonical')
            else 'none is canonical'
        end as canonical_is,
        case
            when coalesce(others.expression, '') != coalesce(firsts.expression, '') then 'another expression'
            else 'the same expression over other columns or rows'
        end as difference
    from computed as others
    inner join computed as firsts
        on
            others.snapshot_id = firsts.snapshot_id
            and others.called = firsts.called
            and others.unique_id != firsts.unique_id
            and others.fingerprint != firsts.fingerprint
            and firsts.place = 1
),

final as (
    select
        snapshot_id,
        project_name,
        unique_id,
        node_name,
        owner,
        column_name,
        expression,
        canonical,
        other_id,
        other_name,
        other_owner,
        other_expression,
        other_canonical,
        canonical_is,
        difference
    from found
)

select * from final
