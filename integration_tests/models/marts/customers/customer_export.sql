{{ config(materialized='view') }}

-- What partners may see: everything but what tells a person.
select {{ star_except(['email', 'full_name']) }}
from {{ ref('customer_360') }}
where is_marketing_opted_in
