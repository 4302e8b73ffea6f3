-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
-- Promises that are said to be broken twice in one load or run, and figures that are there twice.
{%- set keys = {
    'contract_violations_key': (
        ref('dbt_ripple', 'ripple_contract_violations'), ['found_in', 'unique_id', 'column_name', 'violation']
    ),
} -%}
{%- if part_is_on('health') -%}
    {%- do keys.update({
        'domain_kpis_key': (ref('dbt_ripple', 'ripple_domain_kpis'), ['project_name', 'domain', 'week'])
    }) -%}
{%- endif %}
{{ bad_keys(keys) }}
{% endif %}
