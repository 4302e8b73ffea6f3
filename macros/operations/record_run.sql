{% macro record_run(results) %}
    {{- return(adapter.dispatch('record_run', 'dbt_ripple')(results)) -}}
{% endmacro %}


{% macro default__record_run(results) %}
    {% if
        execute
        and flags.WHICH in ('run', 'build', 'test', 'seed', 'snapshot', 'retry', 'freshness')
        and dbt_ripple.raw_setting('record_runs')
    %}
        {% set recorded = [] %}
        {% for result in results if dbt_ripple.is_worth_recording(result) %}
            {% do recorded.append(result) %}
        {% endfor %}
        {% set history = dbt_ripple.run_history_relation() if recorded %}
        {% if history and not dbt_ripple.run_is_recorded(history) %}
            {# dbt executes what a hook returns, commits it, and names the hook where it is refused. #}
            {% do return(dbt_ripple.insert_runs_sql(
                history, recorded, dbt_ripple.counted_rows(recorded)
            )) %}
        {% endif %}
    {% endif %}
    {% do return('') %}
{% endmacro %}
