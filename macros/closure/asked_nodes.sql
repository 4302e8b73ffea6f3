{#-
    The loaded nodes that a name means, as the command line takes it: a stronger name hides a weaker one, and case only
    counts where it tells two apart. Each is a row of ripple_dim_nodes. A name that several nodes of a project have is an error.
    It is looked up while dbt compiles, so that a query holds what it asks for and nothing that could be asked.
-#}
{% macro asked_nodes(node) %}
    {%- set dim_nodes = ref('dbt_ripple', 'ripple_dim_nodes') -%}
    {%- if not execute -%}{%- do return([]) -%}{%- endif -%}
    {%- if adapter.get_relation(database=dim_nodes.database, schema=dim_nodes.schema, identifier=dim_nodes.identifier) is none -%}
        {%- do return(dbt_ripple.no_such_node(node, 0)) -%}
    {%- endif -%}
    {%- set text = node | string | trim | lower -%}
    {%- set words = [text] + text.replace(':', '.').split('.') + text.split(':')[1:] -%}
    {%- set place = "lower(replace(replace(relation_name, '`', ''), '\"', ''))" -%}
    {%- set found = run_query(
        'select snapshot_id, project_name, unique_id, name, resource_type, package_name, label, relation_name, path'
        ~ ' from ' ~ dim_nodes ~ ' where lower(name) in (' ~ dbt_ripple.text_literals(words | unique | list) ~ ')'
        ~ ' or lower(unique_id) = ' ~ dbt_ripple.text_literal(text)
        ~ ' or lower(label) = ' ~ dbt_ripple.text_literal(text)
        ~ ' or ' ~ place ~ ' = ' ~ dbt_ripple.text_literal(text)
        ~ ' or ' ~ place ~ ' like ' ~ dbt_ripple.text_literal('%.' ~ text)
        ~ ' or lower(path) = ' ~ dbt_ripple.text_literal(text)
        ~ ' or lower(path) like ' ~ dbt_ripple.text_literal('%/' ~ text)
    ) -%}
    {%- set named = namespace(nodes=[]) -%}
    {%- for folded in [false, true] if not named.nodes -%}
        {%- for tier in range(5) if not named.nodes -%}
            {%- for row in found.rows -%}
                {%- set names = dbt_ripple.names_of_node(row, tier) -%}
                {%- if ((text in names | map('lower')) if folded else ((node | string | trim) in names)) -%}
                    {%- do named.nodes.append({
                        'snapshot_id': row[0], 'project_name': row[1], 'unique_id': row[2], 'resource_type': row[4]
                    }) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
    {#- Of several projects in one store, this one comes first. -#}
    {%- set own = named.nodes | selectattr('project_name', 'equalto', project_name) | list -%}
    {%- set nodes = own or named.nodes -%}
    {%- if not nodes -%}
        {%- set loaded = run_query('select count(*) from ' ~ dim_nodes) -%}
        {%- do return(dbt_ripple.no_such_node(node, loaded.rows[0][0])) -%}
    {%- endif -%}
    {%- set ids = nodes | map(attribute='unique_id') | unique | sort -%}
    {%- if ids | length > 1 -%}
        {%- do exceptions.raise_compiler_error(
            node ~ ': ' ~ ids | length ~ ' nodes have this name: ' ~ ids | join(', ') ~ '; name one by its unique_id'
        ) -%}
    {%- endif -%}
    {%- do return(nodes) -%}
{% endmacro %}


{#- What a row of ripple_dim_nodes may be called, the strongest first: its id, its name, its name if it holds no data, where it is, its file. -#}
{% macro names_of_node(row, tier) %}
    {%- set unique_id, name, kind, package, label = row[2], row[3], row[4], row[5], row[6] -%}
    {%- if tier == 0 -%}{%- do return([unique_id] + ([label] if kind == 'asset' and label else [])) -%}{%- endif -%}
    {%- if tier in (1, 2) -%}
        {%- set is_seldom_meant = kind in (
            'test', 'unit_test', 'operation', 'analysis', 'asset', 'dataset', 'semantic_model', 'metric', 'saved_query'
        ) -%}
        {%- if is_seldom_meant != (tier == 2) -%}{%- do return([]) -%}{%- endif -%}
        {%- if kind == 'dataset' -%}{%- do return([name]) -%}{%- endif -%}
        {%- set rest = unique_id.split('.')[2:] | join('.') -%}
        {%- set spelled = [name] -%}
        {%- if kind == 'source' -%}
            {%- do spelled.append(rest) -%}
        {%- elif kind == 'model' and rest != name -%}
            {#- One version; without it, the latest is meant. -#}
            {%- set known = graph.nodes.get(unique_id, {}) -%}
            {%- set is_latest = known.get('latest_version') is none or known.get('latest_version') == known.get('version') -%}
            {%- set spelled = [rest] + ([name] if is_latest else []) -%}
        {%- endif -%}
        {%- set names = [] -%}
        {%- for one in spelled -%}
            {%- do names.extend([one, kind ~ ':' ~ one, (package or '') ~ '.' ~ one]) -%}
        {%- endfor -%}
        {%- do return(names) -%}
    {%- endif -%}
    {%- if kind in ('test', 'unit_test', 'operation') -%}{%- do return([]) -%}{%- endif -%}
    {%- if tier == 3 -%}
        {%- set parts = (row[7] or '').replace('`', '').replace('"', '').split('.') -%}
        {%- do return([parts[-1], parts[-2:] | join('.'), parts | join('.')] if row[7] else []) -%}
    {%- endif -%}
    {%- set path = row[8] or '' -%}
    {%- if not path or kind == 'asset' -%}{%- do return([]) -%}{%- endif -%}
    {%- do return([path] + ([path.split('/')[-1]] if not path.endswith(('.yml', '.yaml')) else [])) -%}
{% endmacro %}


{% macro no_such_node(node, loaded) %}
    {#- A question about nothing is an error. A model or test of a project that has loaded nothing yet has no rows. -#}
    {%- if loaded or model.resource_type == 'analysis' -%}
        {%- do exceptions.raise_compiler_error(
            node ~ ': ' ~ (
                'no node of this name is loaded; ripple_dim_nodes lists those that are' if loaded
                else 'no lineage is loaded yet: run dbt-ripple build'
            )
        ) -%}
    {%- endif -%}
    {%- do return([]) -%}
{% endmacro %}
