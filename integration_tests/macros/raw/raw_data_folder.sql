{#- The path of `data/`. Not from a seed's `root_path`: dbt keeps that from an earlier command, which may have run
    in another folder. -#}
{% macro raw_data_folder() %}
    {{ return(invocation_args_dict['project_dir'] ~ '/data') }}
{% endmacro %}
