{#- Only Delta has the snapshot it reads. -#}
{{
    config(
        materialized='view',
        enabled=(env_var('RIPPLE_FILE_FORMAT', 'parquet') == 'delta' or target.type == 'duckdb')
    )
}}

select
    customer_id,
    email_hash,
    country_code,
    is_marketing_opted_in,
    dbt_valid_from as valid_from,
    dbt_valid_to as valid_to,
    dbt_valid_to is null as is_current
from {{ ref('customers_snapshot') }}
