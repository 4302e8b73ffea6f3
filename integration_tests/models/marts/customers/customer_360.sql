with

customers as (
    select * from {{ ref('dim_customers') }}
),

contacts as (
    select
        customer_id,
        email,
        full_name
    from {{ ref('stg_customers') }}
),

orders as (
    select * from {{ ref('int_customer_orders') }}
),

touchpoints as (
    select
        customer_id,
        count(*) as touchpoint_count,
        max(touched_at) as last_touched_at,
        max_by(touchpoint, touched_at) as last_touchpoint
    from {{ ref('int_customer_touchpoints') }}
    group by customer_id
),

visits as (
    select
        customer_id,
        count(*) as session_count,
        sum(event_count) as event_count
    from {{ ref('sessions') }}
    where customer_id is not null
    group by customer_id
),

countries as (
    select
        customer_id,
        count(*) as country_count
    from {{ ref('int_customer_countries') }}
    group by customer_id
),

final as (
    select
        customers.customer_id,
        contacts.email,
        contacts.full_name,
        customers.region,
        customers.signup_date,
        customers.is_marketing_opted_in,
        customers.referred_customers,
        coalesce(orders.order_count, 0) as order_count,
        orders.first_order_date,
        orders.last_order_date,
        coalesce(orders.lifetime_value_usd, 0) as lifetime_value_usd,
        coalesce(orders.has_returned, false) as has_returned,
        coalesce(visits.session_count, 0) as session_count,
        coalesce(visits.event_count, 0) as event_count,
        touchpoints.touchpoint_count,
        touchpoints.last_touched_at,
        touchpoints.last_touchpoint,
        coalesce(countries.country_count, 0) as country_count,
        case
            when orders.order_count is null then 'prospect'
            when orders.last_order_date < {{ days_before('as_of.last_day', 60) }} then 'lapsed'
            when orders.order_count = 1 then 'new'
            else 'loyal'
        end as segment,
        (select max(rates.rate_date) from {{ ref('stg_fx_rates') }} as rates) as rates_as_of
    from customers
    inner join contacts
        on customers.customer_id = contacts.customer_id
    left join orders
        on customers.customer_id = orders.customer_id
    left join touchpoints
        on customers.customer_id = touchpoints.customer_id
    left join visits
        on customers.customer_id = visits.customer_id
    left join countries
        on customers.customer_id = countries.customer_id
    cross join (
        select max(order_date) as last_day
        from {{ ref('fct_orders') }}
    ) as as_of
)

select * from final
