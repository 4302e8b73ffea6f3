{% macro repeated_keys(relation, key) %}
select
    {{ key | join(', ') }},
    count(*) as times
from {{ relation }}
group by {{ key | join(', ') }}
having count(*) > 1
{% endmacro %}
