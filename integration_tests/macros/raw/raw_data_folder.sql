{#- The absolute path of `data/`. dbt tells Jinja the project's folder only through its seeds. -#}
{% macro raw_data_folder() %}
    {{ return(graph.nodes['seed.shop.countries'].root_path ~ '/data') }}
{% endmacro %}
