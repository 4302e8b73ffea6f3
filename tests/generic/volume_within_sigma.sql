{% test volume_within_sigma(model, sigmas=3, days=14, tolerance=none, of='delta', by=none, delay=1) %}
{#-
    Rows where the volume is further from the mean of the trailing days than `sigmas` standard deviations and
    `tolerance` (a share of the mean) allow, and where rows stopped coming. Without `by`, what is compared are the
    counts that `record_run` recorded: by how much they grow a day (`of: delta`), or what they are (`of: level`). With
    `by`, a date column, the rows of each day. Fewer days than `ripple_volume_min_days` pass.
-#}
{%- if of not in ('delta', 'level') -%}
    {%- do exceptions.raise_compiler_error("volume_within_sigma: `of` is " ~ of ~ "; it can be delta or level") -%}
{%- endif -%}
{%- if tolerance is none -%}{%- set tolerance = 0 if of == 'level' and by is none else 0.1 -%}{%- endif -%}
{%- if by is not none -%}
    {{- dbt_ripple.volume_by_day(model, by, sigmas, days, tolerance, delay) -}}
{%- else -%}
    {{- dbt_ripple.volume_of_counts(model, sigmas, days, tolerance, of) -}}
{%- endif -%}
{% endtest %}
