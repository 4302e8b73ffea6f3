{% macro package_is_built() %}
    {# unique_ids read <resource type>.<package>.<name>: models in a run, data tests in a test, both in a build. #}
    {% set ours = [] %}
    {% for unique_id in selected_resources if unique_id.split('.')[1] == 'dbt_ripple' %}
        {% do ours.append(unique_id) %}
    {% endfor %}
    {% if not ours or dbt_ripple.is_asked_for() %}
        {% do return(ours | length > 0) %}
    {% endif %}

    {# Not asked for; but who reads one of our models, names a rule or says how a model is materialized, wants it. #}
    {% set wanted = dbt_ripple.always_built() %}
    {% set found = namespace(any=false) %}
    {% for unique_id in ours if unique_id.startswith('model.') %}
        {% if
            unique_id in wanted
            or graph.nodes[unique_id].config.materialized not in ('ripple_view', 'ripple_table', 'ephemeral')
        %}
            {% set found.any = true %}
        {% endif %}
    {% endfor %}
    {% if not found.any and flags.WHICH in ('run', 'build', 'test') %}
        {% do log(
            'dbt_ripple: left as it is, this run is about your project; `dbt ' ~ flags.WHICH
            ~ ' --select package:dbt_ripple` is about the lineage', info=true
        ) %}
    {% endif %}
    {% do return(found.any) %}
{% endmacro %}
