-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
-- Promises that are said to be broken twice in one load or run.
{{ bad_keys({
    'contract_violations_key': (
        ref('dbt_ripple', 'contract_violations'), ['found_in', 'unique_id', 'column_name', 'violation']
    ),
}) }}
{% endif %}
