{% macro tags(
    owner=none, contract_version=none, criticality=none, pii=none, canonical=none, certified=none, public=none,
    migration=none, owner_email=none, slack=none, domain=none
) %}
    {%- if criticality is not none and criticality not in ('tier1', 'tier2', 'tier3') -%}
        {%- do exceptions.raise_compiler_error(
            'dbt_ripple.tags: criticality is ' ~ criticality ~ '; it can be tier1, tier2 or tier3'
        ) -%}
    {%- endif -%}
    {%- if pii is mapping or (pii is sequence and pii is not string) -%}
        {%- do exceptions.raise_compiler_error(
            'dbt_ripple.tags: pii is the kind of the whole node; say it of a column in the yml file, meta: {pii: ...}'
        ) -%}
    {%- endif -%}
    {%- set said = {
        'owner': owner,
        'contract_version': contract_version,
        'criticality': criticality,
        'pii': pii,
        'canonical': canonical,
        'certified': certified,
        'public': public,
        'migration': migration,
        'owner_email': owner_email,
        'slack': slack,
        'domain': domain,
    } -%}
    {%- set meta = {} -%}
    {%- for name, value in said.items() if value is not none -%}
        {%- do meta.update({name: value}) -%}
    {%- endfor -%}
    {%- do return(meta) -%}
{% endmacro %}
