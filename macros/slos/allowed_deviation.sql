{% macro allowed_deviation(value, sigmas) %}
    {#
        What few days show of the deviation is less certain than what many do. Student's t says by how much, to the
        first order of its expansion; and the mean is estimated, too.
    #}
    {% set widening = (sigmas * sigmas + 1) / 4.0 %}
    {% do return(
        sigmas ~ ' * stddev_samp(' ~ value ~ ') * (1 + ' ~ widening ~ ' / nullif(count(' ~ value ~ ') - 1, 0))'
        ~ ' * sqrt(1 + 1.0 / nullif(count(' ~ value ~ '), 0))'
    ) %}
{% endmacro %}
