-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
-- Figures that are there twice. Those of ripple_lineage_coverage are seen in ripple_lineage_kpis, where there is one.
{%- set keys = {
    'unlisted_relations_key': (
        ref('dbt_ripple', 'ripple_unlisted_relations'), ['project_name', 'schema_name', 'relation_name']
    ),
    'unknown_downstreams_key': (ref('dbt_ripple', 'ripple_unknown_downstreams'), ['project_name', 'week', 'unique_id']),
    'certified_path_integrity_key': (
        ref('dbt_ripple', 'ripple_certified_path_integrity'), ['project_name', 'week', 'unique_id']
    ),
    'duplicate_definitions_key': (
        ref('dbt_ripple', 'ripple_duplicate_definitions'), ['snapshot_id', 'unique_id', 'column_name']
    ),
    'competing_definitions_key': (
        ref('dbt_ripple', 'ripple_competing_definitions'), ['snapshot_id', 'unique_id', 'column_name']
    ),
} -%}
{%- if not part_is_on('operations') -%}
    {%- do keys.update({
        'lineage_coverage_key': (ref('dbt_ripple', 'ripple_lineage_coverage'), ['project_name', 'week'])
    }) -%}
{%- endif %}
{{ bad_keys(keys) }}
{% endif %}
