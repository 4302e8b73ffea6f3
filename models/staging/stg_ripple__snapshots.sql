with source as (
    select * from {{ source('ripple_raw', 'snapshots') }}
),

final as (
    select
        {{ columns_of('snapshots') }}
    from source
)

select * from final
