{% macro read_age(said) %}
    {%- set found = modules.re.match(
        '^\\s*(<=|<)?\\s*(-?[0-9]+)\\s*(m|min|minutes?|h|hours?|d|days?)\\s*$', said | string | lower
    ) -%}
    {%- if not found -%}
        {%- do exceptions.raise_compiler_error(
            'fresh_within: ' ~ said ~ ' is no age; say `count` and `period` (minute, hour or day), or `within`: '
            ~ '30 minutes, or < 30m'
        ) -%}
    {%- endif -%}
    {%- set period = {'m': 'minute', 'h': 'hour', 'd': 'day'}[found.group(3)[0]] -%}
    {%- do return({
        'count': found.group(2) | int,
        'period': period,
        'strict': found.group(1) == '<',
        'text': ('less than ' if found.group(1) == '<' else '') ~ found.group(2) ~ ' ' ~ period,
    }) -%}
{% endmacro %}
