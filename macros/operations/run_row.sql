{% macro run_row(result, counts, recorded_at) %}
    {% set node = result.node %}
    {% set kind = node.resource_type | string %}
    {% set status = result.status | string %}
    {% set times = {'started_at': none, 'completed_at': none} %}
    {% for timing in result.timing or [] %}
        {% if timing.started_at and (times.started_at is none or timing.started_at < times.started_at) %}
            {% do times.update({'started_at': timing.started_at}) %}
        {% endif %}
        {% if timing.completed_at and (times.completed_at is none or timing.completed_at > times.completed_at) %}
            {% do times.update({'completed_at': timing.completed_at}) %}
        {% endif %}
    {% endfor %}

    {% set tested = dbt_ripple.node_of_test(node) if kind in ('test', 'unit_test') else none %}
    {% set generic = node.test_metadata if kind == 'test' else none %}
    {% set arguments = generic.kwargs if generic else {} %}
    {% set volume = generic and generic.name == 'volume_within_sigma' %}
    {# What a null_rate_at_most test looked at is counted by itself: it may have a `where`. #}
    {% set counted = counts.get(tested if volume else node.unique_id, {}) %}
    {% set affected = (result.adapter_response or {}).get('rows_affected') %}
    {% set checksum = node.checksum.checksum if node.checksum is defined and node.checksum else none %}
    {% set message = result.message if status not in ('success', 'pass') else none %}
    {% set git_sha = env_var('DBT_RIPPLE_GIT_SHA', env_var('GITHUB_SHA', env_var('CI_COMMIT_SHA', ''))) %}

    {% set compared = {'days': none} %}
    {% if volume %}
        {# Growth needs a day more than it compares. #}
        {% do compared.update({'days': 0 if arguments.get('by') else
            (arguments.get('days', 14) | int) + (0 if arguments.get('of') == 'level' else 1)
        }) %}
    {% endif %}

    {% do return({
        'invocation_id': invocation_id,
        'unique_id': node.unique_id,
        'project_name': project_name,
        'target_name': target.name,
        'command': flags.WHICH,
        'resource_type': kind,
        'name': node.name,
        'node_id': tested if kind in ('test', 'unit_test') else node.unique_id,
        'test_name': generic.name if generic else none,
        'tags': node.tags | join(','),
        'status': status,
        'execution_time': result.execution_time,
        'started_at': times.started_at,
        'completed_at': times.completed_at,
        'rows_affected': affected if affected is number and affected >= 0 else none,
        'row_count': counted.get('row_count'),
        'failures': result.failures if result.failures is defined else none,
        'message': (message | string)[:1000] if message else none,
        'max_loaded_at': result.max_loaded_at if result.max_loaded_at is defined else none,
        'checksum': checksum or none,
        'git_sha': git_sha or none,
        'recorded_at': recorded_at,
        'column_name': arguments.get('column_name'),
        'null_count': counted.get('null_count'),
        'compared_days': compared.days,
    }) %}
{% endmacro %}
