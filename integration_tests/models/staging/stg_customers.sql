with

customers as (
    select
        customer_id,
        lower(email) as email,
        full_name,
        phone,
        country_code,
        signed_up_at,
        marketing_opt_in,
        referrer_customer_id,
        updated_at,
        row_number() over (
            partition by customer_id
            order by updated_at desc
        ) as version_rank
    from {{ source('raw', 'raw_customers') }}
)

select
    customer_id,
    email,
    {{ mask('email') }} as email_hash,
    full_name,
    {{ only_digits('phone') }} as phone_digits,
    country_code,
    signed_up_at,
    marketing_opt_in as is_marketing_opted_in,
    referrer_customer_id,
    updated_at
from customers
where version_rank = 1
