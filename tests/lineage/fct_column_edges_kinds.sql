-- Column edges of a kind OpenLineage does not know.
select *
from {{ ref('dbt_ripple', 'fct_column_edges') }}
where
    not (
        (type = 'DIRECT' and subtype in ('IDENTITY', 'TRANSFORMATION', 'AGGREGATION'))
        or (type = 'INDIRECT' and subtype in ('JOIN', 'FILTER', 'GROUP_BY', 'SORT', 'WINDOW', 'CONDITIONAL'))
    )
    or type is null
    or subtype is null
