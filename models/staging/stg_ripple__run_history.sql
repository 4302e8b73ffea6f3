with source as (
    select * from {{ source('ripple_raw', 'run_history') }}
),

final as (
    select
        {{ columns_of('run_history') }}
    from source
)

select * from final
