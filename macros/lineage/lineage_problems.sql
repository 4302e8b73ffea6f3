{#-
    The query of comes_from and not_from: one row for each place where a column's lineage, as it was loaded last, is not
    what is asked. The Python package judges the same from artifacts (`graph.lineage_tests`).
-#}
{% macro lineage_problems(kind, column_name, columns, only=false, pii=none) %}
{%- set columns = [] if not columns else ([columns] if columns is string else columns) -%}
{%- set kinds = [] if pii is none or pii is boolean else ([pii] if pii is string else pii) -%}
{%- set asks_pii = kinds or (pii is boolean and pii) -%}
{%- if not columns and not asks_pii -%}
    {%- do exceptions.raise_compiler_error(
        kind ~ ': it asks for nothing; say `columns`' ~ (' or `pii`' if kind == 'not_from' else '')
    ) -%}
{%- endif -%}
{%- set tables = {} -%}
{%- for name in ['snapshots', 'nodes', 'columns', 'column_edges', 'pii_columns'] -%}
    {%- do tables.update({name: dbt_ripple.existing_raw_table(name) if execute else none}) -%}
{%- endfor -%}
{%- set snapshot_id = dbt_ripple.latest_load(tables['snapshots'] if none not in tables.values() else none) -%}
{%- set problems = [] -%}
{%- if execute and snapshot_id is none -%}
    {%- set said = 'no lineage of this project is loaded' -%}
    {%- set expected = dbt_ripple.lineage_is_expected() -%}
    {%- if flags.WHICH in ('test', 'build') -%}
        {%- do exceptions.warn(
            kind ~ ' of ' ~ column_name ~ ': ' ~ said ~ (
                ': run dbt-ripple load' if expected else
                ', so nothing is tested here; dbt-ripple gate judges it before the merge'
            )
        ) -%}
    {%- endif -%}
    {%- if expected -%}{%- do problems.append([said, none, none]) -%}{%- endif -%}
{%- elif execute -%}
    {%- set problems = dbt_ripple.lineage_problems_in(
        tables, snapshot_id, kind, column_name, columns, only, kinds, asks_pii
    ) -%}
{%- endif -%}
{%- for problem, unique_id, problem_column in problems or [[none, none, none]] %}
{{ 'union all' if not loop.first }}
select
    {{ dbt_ripple.text_literal(problem) }} as problem,
    {{ dbt_ripple.text_literal(unique_id) }} as unique_id,
    {{ dbt_ripple.text_literal(problem_column) }} as column_name
{%- endfor %}
{%- if not problems %}
from (select 1 as one) as nothing_found
where 1 = 0
{%- endif -%}
{% endmacro %}


{% macro lineage_problems_in(tables, snapshot_id, kind, column_name, columns, only, kinds, asks_pii) %}
    {#- What is wrong, each as [problem, unique_id, column]. -#}
    {%- set tested_id = dbt_ripple.tested_node() -%}
    {%- set tested = graph.nodes.get(tested_id) or graph.sources[tested_id] -%}
    {%- set node_id = dbt_ripple.builder_of(tested) -%}
    {%- set column = column_name | string | replace('`', '') | replace('"', '') | lower -%}
    {%- set named = {} -%}
    {%- set named_columns = {} -%}
    {%- for text in columns -%}
        {%- set one = dbt_ripple.named_column(text, kind) -%}
        {%- do named.update({one.text: one}) -%}
        {%- do named_columns.setdefault(one.unique_id, {}).update({one.column: true}) -%}
    {%- endfor -%}
    {%- set problems = [] -%}

    {%- set asked = named.values() | rejectattr('column', 'equalto', '*') | list -%}
    {%- do asked.append({'text': tested.name ~ '.' ~ column, 'unique_id': node_id, 'column': column}) -%}
    {%- set known = dbt_ripple.loaded_columns(
        tables, snapshot_id, asked | map(attribute='unique_id') | unique | list
    ) -%}
    {%- set unknown = {} -%}
    {%- for one in asked if one.text not in unknown and one.column not in known.get(one.unique_id, {}) -%}
        {%- set nearest = namespace(name=none, distance=none) -%}
        {%- for other in known.get(one.unique_id, {}) | sort -%}
            {%- set distance = dbt_ripple.edit_distance(one.column, other) -%}
            {%- if nearest.name is none or distance < nearest.distance -%}
                {%- set nearest.name, nearest.distance = other, distance -%}
            {%- endif -%}
        {%- endfor -%}
        {%- do unknown.update({one.text: true}) -%}
        {%- do problems.append([
            'there is no ' ~ one.text ~ (
                ' in the lineage that was loaded: run dbt-ripple load' if nearest.name is none
                else ': did you mean ' ~ nearest.name ~ '?'
            ),
            one.unique_id,
            one.column,
        ]) -%}
    {%- endfor -%}

    {%- set nodes = {} -%}
    {%- set gaps = {} -%}
    {%- set reached = {} -%}
    {%- set answers = [] -%}
    {%- if columns -%}
        {#- Of comes_from with `only`, nothing above what is named is looked at. -#}
        {%- set reached = dbt_ripple.lineage_walk(
            tables, snapshot_id, node_id, column, named_columns if only else {}, false, nodes
        ) -%}
    {%- endif -%}
    {%- for one in named.values() -%}
        {#- 2 is yes, 1 is perhaps, 0 is no. -#}
        {%- set answer = namespace(value=0) -%}
        {%- for column_name, is_value in reached.get(one.unique_id, {}).items()
            if one.column in (column_name, '*') and (one.unique_id, column_name) != (node_id, column) -%}
            {%- set answer.value = [answer.value, 1 + is_value] | max -%}
        {%- endfor -%}
        {%- do answers.append(answer.value) -%}
        {%- if kind == 'comes_from' and answer.value < 2 and one.text not in unknown -%}
            {%- do problems.append([
                ('it is not known whether it comes from ' if answer.value else 'does not come from ') ~ one.text,
                one.unique_id,
                one.column,
            ]) -%}
        {%- elif kind == 'not_from' and answer.value == 2 -%}
            {%- do problems.append(['comes from ' ~ one.text, one.unique_id, one.column]) -%}
        {%- endif -%}
    {%- endfor -%}

    {#- Without `only`, what is found is found; and what is not, its answer says. -#}
    {%- set asks_gaps = only if kind == 'comes_from' else answers | reject('equalto', 2) | list | length > 0 -%}
    {%- for unique_id, found in reached.items() if nodes[unique_id].is_loaded -%}
        {%- set node = nodes[unique_id] -%}
        {%- for column_name, is_value in found.items()
            if not (only and dbt_ripple.is_among(unique_id, column_name, named_columns)) -%}
            {%- if node.is_unread and asks_gaps -%}
                {%- do gaps.update({unique_id: true}) -%}
            {%- elif only and is_value and node.is_given and not node.is_unread -%}
                {%- do problems.append(
                    ['comes from ' ~ node.name ~ '.' ~ column_name ~ ', too', unique_id, column_name]
                ) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}

    {%- if asks_pii -%}
        {%- set personal = dbt_ripple.declared_pii(tables, snapshot_id, kinds) -%}
        {%- set unmasked = dbt_ripple.lineage_walk(tables, snapshot_id, node_id, column, personal, true, nodes) -%}
        {%- for unique_id, found in unmasked.items() if nodes[unique_id].is_loaded -%}
            {%- set node = nodes[unique_id] -%}
            {%- for column_name, is_value in found.items() -%}
                {%- set declared = personal.get(unique_id, {}).get(column_name) -%}
                {%- if declared is none and node.is_unread -%}
                    {%- do gaps.update({unique_id: true}) -%}
                {%- endif -%}
                {%- for pii in (declared or []) if is_value -%}
                    {%- do problems.append([
                        'comes from ' ~ node.name ~ '.' ~ column_name ~ ', which is ' ~ pii, unique_id, column_name
                    ]) -%}
                {%- endfor -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}

    {%- for unique_id in gaps -%}
        {%- set node = nodes[unique_id] -%}
        {%- do problems.append([
            'whether the column comes from what is asked is not known, because ' ~ node.name
            ~ ' cannot be analysed: ' ~ (node.reason or ''),
            unique_id,
            none,
        ]) -%}
    {%- endfor -%}
    {%- do return(problems) -%}
{% endmacro %}


{% macro declared_pii(tables, snapshot_id, kinds) %}
    {#-
        Where a walk to personal data ends: {unique_id: {column: the kinds that are declared}}. Of a column that is
        declassified there are none.
    -#}
    {%- set personal = {} -%}
    {%- set found = run_query(
        "select unique_id, lower(column_name) as column_name, pii, origin from " ~ tables['pii_columns']
        ~ " where snapshot_id = " ~ dbt_ripple.text_literal(snapshot_id)
        ~ " and (origin = 'declassified' or (origin = 'declared'"
        ~ (" and pii in (" ~ dbt_ripple.text_literals(kinds) ~ ")" if kinds else "") ~ "))"
    ) -%}
    {%- for row in found.rows -%}
        {%- set declared = personal.setdefault(row[0], {}).setdefault(row[1], []) -%}
        {%- if row[3] == 'declared' -%}{%- do declared.append(row[2]) -%}{%- endif -%}
    {%- endfor -%}
    {%- do return(personal) -%}
{% endmacro %}
