{% macro run_is_recorded(history) %}
    {% set found = run_query(
        'select 1 as one from ' ~ history ~ ' where invocation_id = '
        ~ dbt_ripple.text_literal(invocation_id) ~ ' limit 1'
    ) %}
    {# What looking around has begun: dbt executes a hook's text outside of it. #}
    {% do adapter.commit() %}
    {% do return(found.rows | length > 0) %}
{% endmacro %}
