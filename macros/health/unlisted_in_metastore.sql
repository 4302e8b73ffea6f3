{% macro unlisted_in_metastore() %}
    {#
        Tables and views, in the schemas where the project has some, that no node of it is. Compiling alone asks the
        warehouse nothing, nor does a run that leaves the package as it is.
    #}
    {% set found = [] %}
    {% if execute and flags.WHICH in ('run', 'build') and dbt_ripple.is_built_now(model.unique_id) %}
        {% set listed = [] %}
        {% set schemas = {} %}
        {% for node in graph.nodes.values() | list + graph.sources.values() | list
            if node.resource_type in ('model', 'seed', 'snapshot', 'source')
                and node.config.get('materialized') != 'ephemeral'
        %}
            {% set in_schema = [node.database, node.schema] | join('.') | lower %}
            {% do listed.append(in_schema ~ '.' ~ (node.identifier or node.alias) | lower) %}
            {# What this package keeps for itself is not the project's. #}
            {% if node.package_name != 'dbt_ripple' %}
                {% do schemas.update({in_schema: [node.database, node.schema]}) %}
            {% endif %}
        {% endfor %}
        {% for in_schema in schemas | sort %}
            {% set database, schema = schemas[in_schema] %}
            {% for relation in dbt_ripple.relations_in(database, schema) %}
                {% if in_schema ~ '.' ~ relation['name'] | lower not in listed %}
                    {% do found.append({'schema': schema, 'name': relation['name'], 'type': relation['type']}) %}
                {% endif %}
            {% endfor %}
        {% endfor %}
    {% endif %}
    {% do return(found | sort(attribute='schema,name')) %}
{% endmacro %}
