{#- Where the owner is written to and paged, and the domain: what dbt_ripple.artifacts says of the same node. -#}
{% macro owner_contact(node, meta) %}
    {%- set entry = dbt_ripple.owner_entry(node, meta) -%}
    {%- set group = dbt_ripple.node_group(node) or {} -%}
    {%- set group_config = group.get('config') or {} -%}
    {%- set group_meta = group_config.get('meta') or {} -%}
    {%- if entry is mapping -%}
        {%- set email = dbt_ripple.tag_person(entry.get('email')) -%}
    {%- else -%}
        {%- set people = dbt_ripple.tag_person(entry) -%}
        {%- set is_address = people and modules.re.fullmatch('[^@\\s]+@[^@\\s]+', people) -%}
        {%- set email = people if is_address else none -%}
    {%- endif -%}
    {%- set channels = [] -%}
    {%- for place in (meta, entry if entry is mapping else {}, group_meta) -%}
        {%- for key in ('slack', 'slack_channel', 'owner_channel') if dbt_ripple.tag_text(place.get(key)) -%}
            {%- do channels.append(dbt_ripple.tag_text(place.get(key))) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return({
        'owner_email': dbt_ripple.tag_text(meta.get('owner_email')) or email,
        'owner_channel': channels | first if channels else none,
        'domain': dbt_ripple.tag_text(meta.get('domain')) or dbt_ripple.tag_text(group_meta.get('domain'))
            or dbt_ripple.tag_text(group.get('name')),
    }) -%}
{% endmacro %}
