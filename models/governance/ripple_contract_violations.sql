{{ config(enabled=part_is_on('governance', also='operations')) }}

with changes as (
    select * from {{ ref('dbt_ripple', 'ripple_definition_changes') }}
    where column_name != '*rows*'
),

nodes as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
),

runs as (
    select
        *,
        row_number() over (
            partition by project_name, target_name, unique_id
            order by ran_at desc, invocation_id desc
        ) as recency
    from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
),

-- What others were promised: it is public, it says a contract version, or dbt enforces its contract.
promised as (
    select * from nodes
    where
        access = 'public'
        or contract_enforced
        or contract_version is not null
),

-- A column that is gone and one that is new with the same definition are one that was renamed.
renamed as (
    select
        gone.snapshot_id,
        gone.unique_id,
        gone.column_name,
        min(new.column_name) as new_name
    from changes as gone
    inner join changes as new
        on
            gone.snapshot_id = new.snapshot_id
            and gone.unique_id = new.unique_id
            and gone.old_fingerprint = new.new_fingerprint
    where
        gone.change = 'removed'
        and new.change = 'added'
    group by gone.snapshot_id, gone.unique_id, gone.column_name
),

-- A column that has another type often has another definition as well: these are two promises.
kinds as (
    select
        changes.*,
        concat('column_', changes.change) as violation
    from changes
    where changes.change in ('removed', 'redefined')

    union all

    select
        changes.*,
        'column_retyped' as violation
    from changes
    where lower(changes.old_data_type) != lower(changes.new_data_type)
),

broken_promises as (
    select
        kinds.project_name,
        kinds.target_name,
        kinds.snapshot_id as found_in,
        kinds.changed_at as found_at,
        kinds.is_latest,
        kinds.unique_id,
        promised.name,
        promised.owner,
        kinds.column_name,
        case
            when renamed.new_name is not null then 'column_renamed'
            else kinds.violation
        end as violation,
        case
            when renamed.new_name is not null then renamed.new_name
            when kinds.violation = 'column_retyped' then kinds.new_data_type
            when kinds.violation = 'column_redefined' then kinds.new_expression
        end as detail,
        kinds.git_sha
    from kinds
    inner join promised
        on
            kinds.base_snapshot_id = promised.snapshot_id
            and kinds.unique_id = promised.unique_id
    left join nodes as after_change
        on
            kinds.snapshot_id = after_change.snapshot_id
            and kinds.unique_id = after_change.unique_id
    left join renamed
        on
            kinds.snapshot_id = renamed.snapshot_id
            and kinds.unique_id = renamed.unique_id
            and kinds.column_name = renamed.column_name
    -- A new contract version is how one says so.
    where coalesce(promised.contract_version, '') = coalesce(after_change.contract_version, '')
),

-- What the warehouse holds is not what was declared; and what dbt refused to build because of it.
refused as (
    select
        runs.project_name,
        runs.target_name,
        runs.invocation_id as found_in,
        runs.ran_at as found_at,
        runs.recency = 1 as is_latest,
        coalesce(runs.node_id, runs.unique_id) as unique_id,
        nodes.name,
        nodes.owner,
        '*' as column_name,
        case
            when runs.test_name = 'schema_matches_contract' then 'schema_drift'
            else 'contract_refused'
        end as violation,
        runs.message as detail,
        runs.git_sha
    from runs
    left join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
        on
            runs.project_name = nodes.project_name
            and coalesce(runs.node_id, runs.unique_id) = nodes.unique_id
    where
        runs.is_failure
        and (
            (runs.test_name = 'schema_matches_contract' and runs.status = 'fail')
            or (runs.test_name is null and lower(runs.message) like '%enforced contract that failed%')
        )
),

violations as (
    select * from broken_promises

    union all

    select * from refused
),

final as (
    select
        project_name,
        target_name,
        found_in,
        found_at,
        is_latest,
        unique_id,
        name,
        owner,
        column_name,
        violation,
        detail,
        git_sha
    from violations
)

select * from final
