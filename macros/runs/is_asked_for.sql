{% macro is_asked_for() %}
    {#-
        Whether this run is about the package: a plain `dbt run`, `dbt test` or `dbt build` is about the project that
        installs it. Said by --select naming the package or something of it, or by a selector of selectors.yml.
    -#}
    {%- set asked = namespace(any=(
        project_name == 'dbt_ripple'
        or dbt_ripple.raw_setting('in_every_run')
        or flags.WHICH not in ('run', 'build', 'test')
        or invocation_args_dict.get('selector')
    )) -%}
    {%- set said = (invocation_args_dict.get('select') or []) | join(' ') -%}
    {%- if said and not asked.any -%}
        {%- for unique_id in selected_resources if unique_id.split('.')[1] == 'dbt_ripple' -%}
            {%- if 'dbt_ripple' in said or unique_id.split('.')[2] in said -%}{%- set asked.any = true -%}{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(asked.any) -%}
{% endmacro %}
