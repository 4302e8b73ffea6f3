{#- A view, built where the run is about the package; left as it is in any other. -#}
{% materialization ripple_view, default %}
    {%- if dbt_ripple.is_built_now(model.unique_id) -%}
        {{- return(dbt_ripple.built_by_dbt('view')) -}}
    {%- endif -%}
    {%- do store_raw_result('main', message='SKIPPED, dbt-ripple build makes it', code=none, rows_affected=none) -%}
    {{- return({'relations': []}) -}}
{% endmaterialization %}
