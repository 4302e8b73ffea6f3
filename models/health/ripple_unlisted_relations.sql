{{ config(
    enabled=part_is_on('health'),
    materialized='ripple_table',
    file_format=var('ripple_file_format', 'parquet')
) }}

{%- set found = unlisted_in_metastore() %}

with relations as (
    {%- for relation in found or [{}] %}
        select
            {{ text_literal(project_name) }} as project_name,
            {{ text_literal(relation.get('schema')) }} as schema_name,
            {{ text_literal(relation.get('name')) }} as relation_name,
            {{ text_literal(relation.get('type')) }} as relation_type,
            {{ now_utc() }} as seen_at
        {{ 'where 1 = 0' if not found }}
        {{ 'union all' if not loop.last }}
    {%- endfor %}
),

final as (
    select
        project_name,
        schema_name,
        relation_name,
        relation_type,
        seen_at
    from relations
)

select * from final
