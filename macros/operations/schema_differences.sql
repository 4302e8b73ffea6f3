{% macro schema_differences(relation, allow_more=false) %}
    {{- return(adapter.dispatch('schema_differences', 'dbt_ripple')(relation, allow_more)) -}}
{% endmacro %}


{% macro default__schema_differences(relation, allow_more) %}
    {% set found = [] %}
    {# Compiling alone asks the warehouse nothing: the relation may not be built yet. #}
    {% if execute and flags.WHICH in ('test', 'build', 'retry') %}
        {% set unique_id = dbt_ripple.tested_node() %}
        {% set node = graph.nodes.get(unique_id) or graph.sources[unique_id] %}
        {% set typed = [] %}
        {% for column in node.columns.values() if column.data_type %}
            {% do typed.append(
                'cast(null as ' ~ column.data_type ~ ') as ' ~ adapter.quote(column.name)
            ) %}
        {% endfor %}

        {% set real = {} %}
        {% for column in adapter.get_column_schema_from_query('select * from ' ~ relation ~ ' where 1 = 0') %}
            {% do real.update({column.name | lower: column.data_type | lower}) %}
        {% endfor %}
        {% set promised = {} %}
        {% if typed %}
            {% for column in adapter.get_column_schema_from_query('select ' ~ typed | join(', ')) %}
                {% do promised.update({column.name | lower: column.data_type | lower}) %}
            {% endfor %}
        {% endif %}

        {% set declared = node.columns.keys() | map('lower') | list %}
        {% for name in declared %}
            {% if name not in real %}
                {% do found.append({'column_name': name, 'difference': 'missing', 'declared_type': promised.get(name)}) %}
            {% elif name in promised and promised[name] != real[name] %}
                {% do found.append({
                    'column_name': name,
                    'difference': 'other type',
                    'declared_type': promised[name],
                    'found_type': real[name],
                }) %}
            {% endif %}
        {% endfor %}
        {% if not allow_more %}
            {% for name in real if name not in declared %}
                {% do found.append({'column_name': name, 'difference': 'not declared', 'found_type': real[name]}) %}
            {% endfor %}
        {% endif %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}
