{#- A snapshot merges, and parquet cannot. -#}
{% snapshot customers_snapshot %}

{{
    config(
        enabled=(env_var('RIPPLE_FILE_FORMAT', 'parquet') == 'delta' or target.type == 'duckdb'),
        target_schema=target.schema,
        unique_key='customer_id',
        strategy='timestamp',
        updated_at='updated_at'
    )
}}

select
    customer_id,
    email_hash,
    country_code,
    is_marketing_opted_in,
    updated_at
from {{ ref('stg_customers') }}

{% endsnapshot %}
