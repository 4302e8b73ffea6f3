{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

with pairs as (
    select * from {{ ref('dbt_ripple', 'ripple_int_consecutive_snapshots') }}
),

-- Of a test, the rows are what it returns.
vertices as (
    select
        snapshot_id,
        unique_id,
        lower(column_name) as column_name,
        fingerprint,
        own_fingerprint,
        data_type,
        expression
    from {{ ref('dbt_ripple', 'stg_ripple__columns') }}

    union all

    select
        snapshot_id,
        unique_id,
        '*rows*' as column_name,
        coalesce(test_fingerprint, rows_fingerprint) as fingerprint,
        own_rows_fingerprint as own_fingerprint,
        cast(null as {{ type_of('string') }}) as data_type,
        cast(null as {{ type_of('string') }}) as expression
    from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
    where package_name is null or package_name != 'dbt_ripple'
),

heads as (
    select
        pairs.snapshot_id as pair_id,
        pairs.is_comparable,
        vertices.unique_id,
        vertices.column_name,
        vertices.fingerprint,
        vertices.own_fingerprint,
        vertices.data_type,
        vertices.expression
    from pairs
    inner join vertices on pairs.snapshot_id = vertices.snapshot_id
),

bases as (
    select
        pairs.snapshot_id as pair_id,
        vertices.unique_id,
        vertices.column_name,
        vertices.fingerprint,
        vertices.own_fingerprint,
        vertices.data_type,
        vertices.expression
    from pairs
    inner join vertices on pairs.base_snapshot_id = vertices.snapshot_id
),

kept_or_added as (
    select
        heads.pair_id as snapshot_id,
        heads.unique_id,
        heads.column_name,
        case
            when bases.unique_id is null then 'added'
            -- Another version of the engine may have other fingerprints for the same definition.
            when heads.is_comparable and coalesce(heads.fingerprint, '') != coalesce(bases.fingerprint, '')
                then 'redefined'
            when lower(heads.data_type) != lower(bases.data_type) then 'retyped'
        end as change,
        bases.fingerprint as old_fingerprint,
        heads.fingerprint as new_fingerprint,
        bases.own_fingerprint as old_own_fingerprint,
        heads.own_fingerprint as new_own_fingerprint,
        bases.data_type as old_data_type,
        heads.data_type as new_data_type,
        bases.expression as old_expression,
        heads.expression as new_expression
    from heads
    left join bases
        on
            heads.pair_id = bases.pair_id
            and heads.unique_id = bases.unique_id
            and heads.column_name = bases.column_name
),

removed as (
    select
        bases.pair_id as snapshot_id,
        bases.unique_id,
        bases.column_name,
        'removed' as change,
        bases.fingerprint as old_fingerprint,
        cast(null as {{ type_of('string') }}) as new_fingerprint,
        bases.own_fingerprint as old_own_fingerprint,
        cast(null as {{ type_of('string') }}) as new_own_fingerprint,
        bases.data_type as old_data_type,
        cast(null as {{ type_of('string') }}) as new_data_type,
        bases.expression as old_expression,
        cast(null as {{ type_of('string') }}) as new_expression
    from bases
    left join heads
        on
            bases.pair_id = heads.pair_id
            and bases.unique_id = heads.unique_id
            and bases.column_name = heads.column_name
    where heads.unique_id is null
),

moved as (
    select * from kept_or_added
    where change is not null

    union all

    select * from removed
),

final as (
    select
        snapshot_id,
        unique_id,
        column_name,
        change,
        old_fingerprint,
        new_fingerprint,
        old_own_fingerprint,
        new_own_fingerprint,
        old_data_type,
        new_data_type,
        old_expression,
        new_expression
    from moved
)

select * from final
