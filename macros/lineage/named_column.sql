{% macro named_column(text, test_name) %}
    {#
        The column that `node.column`, `source.table.column` or `package.node.column` means, of a node of the project;
        the column may be `*`. Whether there is such a column is a question to the lineage.
    #}
    {%- set words = (text | string | trim).split('.') -%}
    {%- set column = words[-1] -%}
    {%- set wanted = words[:-1] | join('.') | lower -%}
    {%- set found = [] -%}
    {%- for node in (graph.nodes.values() | list) + (graph.sources.values() | list)
        if node.resource_type in ('model', 'seed', 'snapshot', 'source') -%}
        {%- set name = node.name | lower -%}
        {%- set names = [node.unique_id | lower, name, node.package_name ~ '.' ~ name] -%}
        {%- if node.resource_type == 'source' -%}
            {%- do names.extend([
                (node.source_name ~ '.' ~ node.name) | lower,
                (node.package_name ~ '.' ~ node.source_name ~ '.' ~ node.name) | lower,
            ]) -%}
        {%- elif node.version -%}
            {%- do names.append(name ~ '.v' ~ node.version) -%}
            {%- if node.latest_version and node.version != node.latest_version -%}
                {%- set names = names | reject('equalto', name) | list -%}
            {%- endif -%}
        {%- endif -%}
        {%- if wanted in names -%}{%- do found.append(node) -%}{%- endif -%}
    {%- endfor -%}
    {#- A model before a source of its name. -#}
    {%- set models = found | selectattr('resource_type', 'ne', 'source') | list -%}
    {%- set found = models or found -%}
    {%- if found | length != 1 -%}
        {%- set other = namespace(name=none, likeness=0) -%}
        {%- for node in (graph.nodes.values() | list) + (graph.sources.values() | list)
            if not found and node.resource_type in ('model', 'seed', 'snapshot', 'source') -%}
            {%- set likeness = dbt_ripple.likeness(wanted.split('.')[-1], node.name | lower) -%}
            {%- if likeness > other.likeness -%}
                {%- set other.name, other.likeness = node.name, likeness -%}
            {%- endif -%}
        {%- endfor -%}
        {%- do exceptions.raise_compiler_error(
            test_name ~ ': ' ~ (
                'there is no node ' ~ (wanted or text) ~ ' of the column ' ~ text
                ~ ('; did you mean ' ~ other.name ~ '.' ~ column ~ '?' if other.likeness >= 0.5 else '')
                if not found else
                text ~ ' can be of ' ~ found | map(attribute='unique_id') | join(' and ') ~ ': name one by its id'
            )
        ) -%}
    {%- endif -%}
    {%- do return({'text': text, 'unique_id': dbt_ripple.builder_of(found[0]), 'column': column | lower}) -%}
{% endmacro %}


{% macro likeness(one, other) %}
    {#- The share of pairs of letters that two words have in common. -#}
    {%- set pairs = [] -%}
    {%- for at in range(other | length - 1) -%}{%- do pairs.append(other[at:at + 2]) -%}{%- endfor -%}
    {%- set all = (one | length) + (other | length) - 2 -%}
    {%- set common = namespace(count=0) -%}
    {%- for at in range(one | length - 1) if one[at:at + 2] in pairs -%}
        {%- do pairs.remove(one[at:at + 2]) -%}
        {%- set common.count = common.count + 1 -%}
    {%- endfor -%}
    {%- do return(2 * common.count / all if all > 0 else 0) -%}
{% endmacro %}


{% macro builder_of(node) %}
    {#- Of a source that a node of the project builds, that node. -#}
    {%- if node.resource_type == 'source' and node.relation_name -%}
        {%- for other in graph.nodes.values() if other.relation_name and other.resource_type != 'test' -%}
            {%- if other.relation_name | lower == node.relation_name | lower -%}
                {%- do return(other.unique_id) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(node.unique_id) -%}
{% endmacro %}
