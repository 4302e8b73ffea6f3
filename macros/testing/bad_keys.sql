{% macro bad_keys(relation, key) %}
select
    {{ key | join(',\n    ') }},
    count(*) as times
from {{ relation }}
group by
    {{ key | join(',\n    ') }}
having
    count(*) > 1
    {%- for column in key %}
    or {{ column }} is null
    {%- endfor %}
{% endmacro %}
