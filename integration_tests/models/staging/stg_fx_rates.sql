{{ config(materialized='table') }}

with

rates as (
    select * from {{ source('raw', 'fx_rates') }}
),

-- Nobody publishes rates at weekends: the last known one holds.
final as (
    select
        rate_date,
        currency,
        {{ last_known('usd_rate', 'partition by currency order by rate_date') }} as usd_rate,
        usd_rate is null as is_carried_forward
    from rates
)

select * from final
