{% macro counted_rows(results) %}
    {#
        The relations to count, by unique_id: built in this run and asked for by the var or by meta, or tested for
        their volume in this run. And by the unique_id of a null_rate_at_most test, what it looked at: its rows, and
        those without a value. One query counts all of them.
    #}
    {% set asked = dbt_ripple.raw_setting('count_rows') or [] %}
    {% set found = {} %}
    {% set queries = [] %}
    {% for result in results if result.status | string in ('success', 'pass', 'fail', 'warn') %}
        {% set node = result.node %}
        {% set kind = node.resource_type | string %}
        {% set unique_id = none %}
        {% set column_name = none %}
        {% if kind == 'test' and node.test_metadata and node.test_metadata.name == 'volume_within_sigma' %}
            {% set unique_id = dbt_ripple.node_of_test(node) %}
        {% elif kind == 'test' and node.test_metadata and node.test_metadata.name == 'null_rate_at_most' and '{{' not in (node.config.where or '') %}
            {% set unique_id = dbt_ripple.node_of_test(node) %}
            {% set column_name = node.test_metadata.kwargs.get('column_name') %}
        {% elif
            kind in ('model', 'seed', 'snapshot')
            and (
                asked is sameas true
                or (asked is not sameas true and (node.name in asked or node.unique_id in asked))
                or node.config.get('meta', {}).get('ripple_count_rows')
            )
        %}
            {% set unique_id = node.unique_id %}
        {% endif %}

        {% set counted = graph.nodes.get(unique_id) or graph.sources.get(unique_id) %}
        {% if counted and (column_name or unique_id not in found) and counted.config.get('materialized') != 'ephemeral' %}
            {% set relation = adapter.get_relation(
                database=counted.database,
                schema=counted.schema,
                identifier=counted.identifier or counted.alias
            ) %}
            {% if relation is not none and column_name %}
                {% do queries.append(
                    'select ' ~ dbt_ripple.text_literal(node.unique_id) ~ ' as unique_id, count(*) as row_count, '
                    ~ 'count(*) - count(' ~ column_name ~ ') as null_count from ' ~ relation
                    ~ (' where ' ~ node.config.where if node.config.where else '')
                ) %}
            {% elif relation is not none %}
                {% do found.update({unique_id: relation}) %}
                {% do queries.append(
                    'select ' ~ dbt_ripple.text_literal(unique_id) ~ ' as unique_id, count(*) as row_count, '
                    ~ 'cast(null as ' ~ dbt.type_bigint() ~ ') as null_count from ' ~ relation
                ) %}
            {% endif %}
        {% endif %}
    {% endfor %}

    {% set counts = {} %}
    {% for row in (run_query(queries | join('\nunion all\n')).rows if queries else []) %}
        {% do counts.update({row[0]: {
            'row_count': row[1] | int, 'null_count': row[2] | int if row[2] is not none else none
        }}) %}
    {% endfor %}
    {% do return(counts) %}
{% endmacro %}
