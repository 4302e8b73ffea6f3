{% macro node_tags(node) %}
    {#- The same answers as dbt_ripple.artifacts gives in Python; a test compares both on the same nodes. -#}
    {%- set meta = dict(node.get('meta') or {}) -%}
    {%- do meta.update((node.get('config') or {}).get('meta') or {}) -%}
    {%- set version = node.get('version') -%}
    {%- if version is none and meta.get('contract_version') is not boolean -%}
        {%- set said = meta.get('contract_version') -%}
        {%- set version = said if said is string or said is number else none -%}
    {%- endif -%}
    {%- if version is float and version == version | int -%}
        {%- set version = version | int -%}
    {%- endif -%}
    {%- set node_labels = (node.get('tags') or []) + ((node.get('config') or {}).get('tags') or []) -%}
    {%- set public = meta.get('public') -%}
    {%- if public is none -%}
        {%- set public = 'public' in node_labels | map('lower') -%}
    {%- endif -%}
    {%- set said = {
        'owner': dbt_ripple.node_owner(node, meta),
        'contract_version': version | string if version is not none else none,
        'criticality': dbt_ripple.tag_text(meta.get('criticality')),
        'canonical': dbt_ripple.tag_flag(meta.get('canonical')),
        'certified': dbt_ripple.tag_flag(meta.get('certified')),
        'public': dbt_ripple.tag_flag(public),
        'pii': dbt_ripple.tag_pii(meta.get('pii'), node_labels),
    } -%}
    {%- do said.update(dbt_ripple.owner_contact(node, meta)) -%}
    {%- for key, column in (node.get('columns') or {}).items() -%}
        {%- set config = column.get('config') or {} -%}
        {%- set column_meta = dict(column.get('meta') or {}) -%}
        {%- do column_meta.update(config.get('meta') or {}) -%}
        {%- set labels = (column.get('tags') or []) + (config.get('tags') or []) -%}
        {%- do said.update({
            'column.' ~ (column.get('name') or key): dbt_ripple.tag_pii(column_meta.get('pii'), labels)
        }) -%}
    {%- endfor -%}
    {%- set found = {} -%}
    {%- for name, value in said.items() if value -%}
        {%- do found.update({name: value}) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}
