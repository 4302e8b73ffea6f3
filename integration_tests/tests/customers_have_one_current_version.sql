{{ config(enabled=(env_var('RIPPLE_FILE_FORMAT', 'parquet') == 'delta' or target.type == 'duckdb')) }}

select customer_id
from {{ ref('customer_history') }}
where is_current
group by customer_id
having count(*) > 1
