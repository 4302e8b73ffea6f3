{% macro red_below(figure) %}
    {%- set shares = {'coverage': 0.9, 'certified': 1, 'slo': 1} -%}
    {%- do shares.update(var('ripple_red_below', none) or {}) -%}
    {%- do return(shares[figure]) -%}
{% endmacro %}
