{% macro counted_rows(results) %}
    {#
        The relations to count, by unique_id: built in this run and asked for by the var or by meta, or tested for
        their volume in this run. One query counts all of them.
    #}
    {% set asked = dbt_ripple.raw_setting('count_rows') or [] %}
    {% set found = {} %}
    {% for result in results if result.status | string in ('success', 'pass', 'fail', 'warn') %}
        {% set node = result.node %}
        {% set kind = node.resource_type | string %}
        {% set unique_id = none %}
        {% if kind == 'test' and node.test_metadata and node.test_metadata.name == 'volume_within_sigma' %}
            {% set unique_id = dbt_ripple.node_of_test(node) %}
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
        {% if counted and unique_id not in found and counted.config.get('materialized') != 'ephemeral' %}
            {% set relation = adapter.get_relation(
                database=counted.database,
                schema=counted.schema,
                identifier=counted.identifier or counted.alias
            ) %}
            {% if relation is not none %}
                {% do found.update({unique_id: relation}) %}
            {% endif %}
        {% endif %}
    {% endfor %}

    {% set counts = {} %}
    {% if found %}
        {% set queries = [] %}
        {% for unique_id, relation in found.items() %}
            {% do queries.append(
                'select ' ~ dbt_ripple.text_literal(unique_id) ~ ' as unique_id, count(*) as row_count from ' ~ relation
            ) %}
        {% endfor %}
        {% for row in run_query(queries | join('\nunion all\n')).rows %}
            {% do counts.update({row[0]: row[1] | int}) %}
        {% endfor %}
    {% endif %}
    {% do return(counts) %}
{% endmacro %}
