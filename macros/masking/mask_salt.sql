{% macro default__mask_salt() %}
    {#- dbt lets no model see DBT_ENV_SECRET_...; a plain variable would end up in the artifacts and the logs. -#}
    {%- do exceptions.raise_compiler_error(
        "dbt_ripple.mask: how='tokenise' needs to know where " ~ target.type ~ ' keeps the salt: write a macro '
        ~ target.type ~ '__mask_salt() that returns an SQL expression'
    ) -%}
{% endmacro %}


{#-
    Spark puts the value of a setting into a query before it parses it, so that compiled SQL has only the name. A
    setting that is not there would leave every token unsalted: that is an error. So is one that Spark redacts (by
    `spark.redaction.regex`, for its name or its value): what it puts in then is the same for everybody.
-#}
{% macro spark__mask_salt() %}
case
    when length('${dbt_ripple.salt}') < 16 or '${dbt_ripple.salt}' like '$_dbt%' or '${dbt_ripple.salt}' like '%(redacted)'
        then raise_error('dbt_ripple.salt is not set, is redacted, or has less than 16 characters: docs/pii.md')
    else '${dbt_ripple.salt}'
end
{% endmacro %}
