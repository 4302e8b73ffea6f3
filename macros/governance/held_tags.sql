{% macro held_tags() %}
    {%- set tags = [
        'owner', 'owner_name', 'owner_email', 'owner_channel', 'domain', 'contract_version', 'criticality', 'description',
    ] -%}
    {%- for tag in tags %}
select
    snapshot_id,
    unique_id,
    {{ dbt_ripple.text_literal(tag) }} as tag
from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
where trim({{ tag }}) != ''
{{ 'union all' if not loop.last }}
    {%- endfor -%}
{% endmacro %}
