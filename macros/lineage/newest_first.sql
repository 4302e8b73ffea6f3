{#-
    By which a project's loads are ordered, the one that the models show first: where several targets load into one
    schema, those of the target that the models are built for, where it has any. Artifacts made later are newer, whatever
    the order they were loaded in.
-#}
{% macro newest_first() -%}
case when target_name = {{ dbt_ripple.text_literal(target.name) }} then 0 else 1 end asc, coalesce(generated_at, loaded_at) desc, loaded_at desc, snapshot_id desc
{%- endmacro %}
