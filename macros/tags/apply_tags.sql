{% macro apply_tags() %}
    {#-
        A post-hook: it runs its statements itself and renders to nothing, so that dbt has none to run. `dbt-ripple
        select` knows that it changes no rows.
    -#}
    {%- if execute and model.resource_type in ('model', 'snapshot', 'seed') -%}
        {%- do adapter.dispatch('apply_tags', 'dbt_ripple')(this, model) -%}
    {%- endif -%}
{% endmacro %}


{% macro default__apply_tags(relation, node) %}
    {%- do exceptions.raise_compiler_error(
        'dbt_ripple.apply_tags knows where Spark and Databricks keep tags, not ' ~ target.type
        ~ ': write a macro ' ~ target.type ~ '__apply_tags(relation, node), and ' ~ target.type
        ~ '__read_tags(relation) for the test'
    ) -%}
{% endmacro %}


{% macro spark__apply_tags(relation, node) %}
    {%- set is_view = node.config.materialized == 'view' -%}
    {%- set alter = 'alter ' ~ ('view ' if is_view else 'table ') ~ relation -%}
    {%- set wanted = dbt_ripple.node_tags(node) -%}
    {%- set held = dbt_ripple.read_tags(relation) -%}
    {%- set properties = [] -%}
    {%- for name, value in wanted.items() if held.get(name) != value -%}
        {%- do properties.append(
            dbt_ripple.text_literal('dbt_ripple.' ~ name) ~ ' = ' ~ dbt_ripple.text_literal(value)
        ) -%}
    {%- endfor -%}
    {%- if properties -%}
        {%- do run_query(alter ~ ' set tblproperties (' ~ properties | join(', ') ~ ')') -%}
    {%- endif -%}
    {%- set gone = [] -%}
    {%- for name in held if name not in wanted -%}
        {%- do gone.append(dbt_ripple.text_literal('dbt_ripple.' ~ name)) -%}
    {%- endfor -%}
    {%- if gone -%}
        {%- do run_query(alter ~ ' unset tblproperties if exists (' ~ gone | join(', ') ~ ')') -%}
    {%- endif -%}
    {%- if dbt_ripple.raw_setting('column_comments') and not is_view -%}
        {%- do dbt_ripple.apply_column_comments(relation, node, wanted) -%}
    {%- endif -%}
{% endmacro %}


{#- Tags of Unity Catalog, on the relation and on its columns. -#}
{% macro databricks__apply_tags(relation, node) %}
    {%- set alter = 'alter ' ~ ('view ' if node.config.materialized == 'view' else 'table ') ~ relation -%}
    {%- set wanted = dbt_ripple.node_tags(node) -%}
    {%- set held = dbt_ripple.read_tags(relation) -%}
    {%- for name, value in wanted.items() if held.get(name) != value -%}
        {%- set column = name[7:] if name[:7] == 'column.' else none -%}
        {%- set of = ' alter column ' ~ adapter.quote(column | replace('`', '``')) if column else '' -%}
        {%- set key = dbt_ripple.text_literal('dbt_ripple.' ~ ('pii' if column else name)) -%}
        {%- do run_query(alter ~ of ~ ' set tags (' ~ key ~ ' = ' ~ dbt_ripple.text_literal(value) ~ ')') -%}
    {%- endfor -%}
    {%- for name in held if name not in wanted -%}
        {%- set column = name[7:] if name[:7] == 'column.' else none -%}
        {%- set of = ' alter column ' ~ adapter.quote(column | replace('`', '``')) if column else '' -%}
        {%- set key = dbt_ripple.text_literal('dbt_ripple.' ~ ('pii' if column else name)) -%}
        {%- do run_query(alter ~ of ~ ' unset tags (' ~ key ~ ')') -%}
    {%- endfor -%}
{% endmacro %}
