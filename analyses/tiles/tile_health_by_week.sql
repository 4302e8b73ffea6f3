{{ config(enabled=part_is_on('health', also='operations')) }}

-- A tile of lines, one for each figure: how the health of each project went, week by week. The shares are percent.
{%- set figures = {
    'node_coverage': 100,
    'tier1_column_coverage': 100,
    'certified_path_integrity': 100,
    'unknown_downstreams': 1,
    'median_blast_radius': 1,
    'incidents_opened': 1,
    'mttr_minutes': 1,
} %}

with kpis as (
    select * from {{ ref('dbt_ripple', 'ripple_lineage_kpis') }}
),

figures as (
    {%- for figure, times in figures.items() %}
        select
            project_name,
            week,
            '{{ figure }}' as figure,
            cast({{ figure }} as {{ type_double() }}) * {{ times }} as figure_value
        from kpis
        {{ 'union all' if not loop.last }}
    {%- endfor %}
)

select
    project_name,
    week,
    figure,
    figure_value
from figures
where figure_value is not null
order by project_name, figure, week
