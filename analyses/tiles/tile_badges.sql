{{ config(enabled=part_is_on('health', also='operations')) }}

-- A tile of badges: coverage, certified and SLOs of each project, domain and dataset, with the share below which it is
-- red. A table with conditional colours, filtered by `level`.
with dim_nodes as (
    select
        project_name,
        snapshot_id,
        unique_id,
        name,
        coalesce(domain, 'no domain') as domain,
        analysis_status,
        resource_type,
        package_name
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

-- One row for each node, certified node and check that counts.
counted as (
    select
        project_name,
        unique_id,
        'coverage' as figure,
        case when analysis_status = 'analysed' then 1 else 0 end as met
    from dim_nodes
    where
        analysis_status != 'leaf'
        and resource_type not in ('test', 'unit_test')
        and (package_name is null or package_name != 'dbt_ripple')

    union all

    select
        project_name,
        unique_id,
        'certified' as figure,
        case when is_complete then 1 else 0 end as met
    from {{ ref('dbt_ripple', 'ripple_certified_path_integrity') }}
    where is_latest

    union all

    select
        project_name,
        node_id as unique_id,
        'slo' as figure,
        case when state = 'met' then 1 else 0 end as met
    from {{ ref('dbt_ripple', 'ripple_slo_status') }}
    where state in ('met', 'violated')
),

-- Of a dataset the columns count, not the node.
columns as (
    select
        dim_nodes.project_name,
        dim_nodes.unique_id,
        'coverage' as figure,
        case
            when dim_nodes.analysis_status = 'analysed' and dim_columns.fingerprint is not null then 1 else 0
        end as met
    from dim_nodes
    inner join {{ ref('dbt_ripple', 'ripple_dim_columns') }} as dim_columns
        on
            dim_nodes.snapshot_id = dim_columns.snapshot_id
            and dim_nodes.unique_id = dim_columns.unique_id
    where
        dim_nodes.analysis_status != 'leaf'
        and dim_nodes.resource_type in ('model', 'snapshot')
        and (dim_nodes.package_name is null or dim_nodes.package_name != 'dbt_ripple')
),

of_datasets as (
    select * from columns

    union all

    select * from counted
    where figure != 'coverage'
),

levels as (
    select
        project_name,
        'project' as level,
        project_name as name,
        figure,
        met
    from counted

    union all

    select
        counted.project_name,
        'domain' as level,
        dim_nodes.domain as name,
        counted.figure,
        counted.met
    from counted
    inner join dim_nodes
        on
            counted.project_name = dim_nodes.project_name
            and counted.unique_id = dim_nodes.unique_id

    union all

    select
        project_name,
        'dataset' as level,
        unique_id as name,
        figure,
        met
    from of_datasets
),

shares as (
    select
        project_name,
        level,
        name,
        figure,
        sum(met) as met,
        count(*) as counted,
        {{ share('sum(met)', 'count(*)') }} as met_share,
        case figure
            when 'coverage' then {{ red_below('coverage') }}
            when 'certified' then {{ red_below('certified') }}
            when 'slo' then {{ red_below('slo') }}
        end as red_below
    from levels
    group by project_name, level, name, figure
)

select
    project_name,
    level,
    name,
    figure,
    met,
    counted,
    met_share,
    red_below,
    case when met_share < red_below then 'red' else 'green' end as colour
from shares
order by project_name, level, name, figure
