{% macro read_share(said) %}
    {%- set found = modules.re.match('^\\s*(<=|<)?\\s*([0-9]*\\.?[0-9]+(?:[eE]-?[0-9]+)?)\\s*(%)?\\s*$', said | string) -%}
    {%- set share = none -%}
    {%- if found -%}
        {%- set share = (found.group(2) | float) / (100 if found.group(3) else 1) -%}
    {%- endif -%}
    {%- if share is none or share > 1 -%}
        {%- do exceptions.raise_compiler_error(
            'null_rate_at_most: `rate` is ' ~ said ~ '; it can be 0.005, 0.5% or < 0.5%'
        ) -%}
    {%- endif -%}
    {%- do return({'share': share, 'strict': found.group(1) == '<'}) -%}
{% endmacro %}
