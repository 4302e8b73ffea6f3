{#- A view, built where the run is about the package, unless it is there as it would be; left as it is in any other. -#}
{% materialization ripple_view, default %}
    {%- if not dbt_ripple.is_built_now(model.unique_id) -%}
        {%- do store_raw_result('main', message='SKIPPED, dbt-ripple build makes it', code=none, rows_affected=none) -%}
        {{- return({'relations': []}) -}}
    {%- endif -%}
    {%- if not should_full_refresh() and dbt_ripple.is_same_view(load_cached_relation(this), sql) -%}
        {%- do store_raw_result('main', message='OK, it is there', code=none, rows_affected=none) -%}
        {{- return({'relations': [this]}) -}}
    {%- endif -%}
    {{- return(dbt_ripple.built_by_dbt('view')) -}}
{% endmaterialization %}
