{% test row_count_between(model, at_least, at_most) %}

select count(*) as row_count
from {{ model }}
having count(*) not between {{ at_least }} and {{ at_most }}

{% endtest %}
