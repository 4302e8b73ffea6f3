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
{%- for name in ['snapshots', 'nodes', 'columns', 'column_edges', 'node_closure', 'pii_columns'] -%}
    {%- do tables.update({name: dbt_ripple.existing_raw_table(name) if execute else none}) -%}
{%- endfor -%}
{%- if not execute -%}
select 1 as problem
{%- elif not dbt_ripple.lineage_is_loaded(tables['snapshots'] if none not in tables.values() else none) -%}
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
select
    '{{ said }}' as problem,
    {{ dbt_ripple.text_literal(none) }} as unique_id,
    {{ dbt_ripple.text_literal(none) }} as column_name
from (select 1 as one) as nothing_loaded
where {{ '1 = 1' if expected else '1 = 0' }}
{%- else -%}
{{- dbt_ripple.lineage_problems_in(tables, kind, column_name, columns, only, kinds, asks_pii) -}}
{%- endif -%}
{% endmacro %}


{% macro lineage_problems_in(tables, kind, column_name, columns, only, kinds, asks_pii) %}
{%- set tested_id = dbt_ripple.tested_node() -%}
{%- set tested = graph.nodes.get(tested_id) or graph.sources[tested_id] -%}
{%- set node_id = dbt_ripple.builder_of(tested) -%}
{%- set named = [] -%}
{%- for text in columns -%}{%- do named.append(dbt_ripple.named_column(text, kind)) -%}{%- endfor -%}
{%- set column = column_name | string | replace('`', '') | replace('"', '') | lower -%}
{%- set above = dbt_ripple.nodes_above(node_id) -%}
{%- set steps = 2 * above.steps + 2 -%}
{%- set none_text = dbt_ripple.text_literal(none) -%}
with latest as (
    select snapshot_id
    from (
        select
            snapshot_id,
            row_number() over (
                order by coalesce(generated_at, loaded_at) desc, loaded_at desc, snapshot_id desc
            ) as recency
        from {{ tables['snapshots'] }}
        where project_name = {{ dbt_ripple.text_literal(project_name) }}
    ) as ranked
    where recency = 1
),

nodes as (
    select
        nodes.snapshot_id,
        nodes.unique_id,
        nodes.name,
        nodes.analysis_status,
        nodes.analysis_reason,
        case when nodes.resource_type in ('model', 'snapshot') then 0 else 1 end as is_given,
        -- What cannot be analysed may make its columns of anything that it reads.
        case
            when nodes.resource_type not in ('model', 'snapshot') and made.child_id is null then 0
            when nodes.analysis_status = 'broken' then 1
            when nodes.analysis_reason is not null and nodes.analysis_reason not like 'may not build:%' then 1
            else 0
        end as is_unread
    from {{ tables['nodes'] }} as nodes
    inner join latest on nodes.snapshot_id = latest.snapshot_id
    left join (
        select distinct
            snapshot_id,
            child_id
        from {{ tables['column_edges'] }}
    ) as made
        on
            nodes.snapshot_id = made.snapshot_id
            and nodes.unique_id = made.child_id
),

columns as (
    select distinct
        columns.snapshot_id,
        columns.unique_id,
        lower(columns.column_name) as column_name
    from {{ tables['columns'] }} as columns
    inner join nodes
        on
            columns.snapshot_id = nodes.snapshot_id
            and columns.unique_id = nodes.unique_id
    -- Of a query that was followed they are all known: what only a yml file declares is none.
    where
        nodes.analysis_status != 'analysed'
        or columns.fingerprint is not null
),

personal as (
    select
        pii_columns.unique_id,
        lower(pii_columns.column_name) as column_name,
        pii_columns.pii,
        pii_columns.origin
    from {{ tables['pii_columns'] }} as pii_columns
    inner join latest on pii_columns.snapshot_id = latest.snapshot_id
    where
        pii_columns.origin = 'declassified'
        or (
            pii_columns.origin = 'declared'
            {%- if kinds %}
            and pii_columns.pii in ({% for name in kinds %}{{ dbt_ripple.text_literal(name) }}{{ ', ' if not loop.last }}{% endfor %})
            {%- endif %}
        )
),

named as (
    {%- for one in named %}
    select
        {{ dbt_ripple.text_literal(one.text) }} as named,
        {{ dbt_ripple.text_literal(one.unique_id) }} as unique_id,
        {{ dbt_ripple.text_literal(one.column) }} as column_name
    {{ 'union all' if not loop.last }}
    {%- else %}
    select
        {{ none_text }} as named,
        {{ none_text }} as unique_id,
        {{ none_text }} as column_name
    from latest
    where 1 = 0
    {%- endfor %}
),

lineage as (
    select
        edges.snapshot_id,
        edges.parent_id,
        lower(edges.parent_column) as parent_column,
        edges.child_id,
        lower(edges.child_column) as child_column,
        edges.masking,
        1 - readers.is_unread as is_value
    from {{ tables['column_edges'] }} as edges
    inner join nodes as readers
        on
            edges.snapshot_id = readers.snapshot_id
            and edges.child_id = readers.unique_id
    {#- Of very large projects the closure is cut; dbt's graph has no relation that is named without ref. #}
    left join {{ tables['node_closure'] }} as closure
        on
            edges.snapshot_id = closure.snapshot_id
            and edges.child_id = closure.ancestor_id
            and closure.descendant_id = {{ dbt_ripple.text_literal(node_id) }}
    where
        (edges.type = 'DIRECT' or readers.is_unread = 1)
        and (
            closure.ancestor_id is not null
            or edges.child_id in (
                {%- for unique_id in above.unique_ids %}
                {{ dbt_ripple.text_literal(unique_id) }}{{ ',' if not loop.last }}
                {%- endfor %}
            )
        )

    union all

    -- Where it has too many pairs of columns, only its rows tell what it reads.
    select
        columns.snapshot_id,
        columns.unique_id as parent_id,
        '*rows*' as parent_column,
        columns.unique_id as child_id,
        columns.column_name as child_column,
        false as masking,
        0 as is_value
    from columns
    inner join nodes
        on
            columns.snapshot_id = nodes.snapshot_id
            and columns.unique_id = nodes.unique_id
            and nodes.is_unread = 1
),

{% if columns -%}
{#- Of comes_from with `only`, nothing above what is named is looked at. -#}
reached as (
    {{ dbt_ripple.lineage_walk(node_id, column, 'named' if only else none, false, steps) | indent(4) }}
),
{%- else -%}
reached as (
    select
        snapshot_id,
        unique_id,
        column_name,
        true as is_value
    from columns
    where 1 = 0
),
{%- endif %}

{% if asks_pii -%}
unmasked as (
    {{ dbt_ripple.lineage_walk(node_id, column, 'personal', true, steps) | indent(4) }}
),
{%- endif %}

missing_names as (
    select
        named,
        unique_id,
        column_name
    from named
    where column_name != '*'
    union all
    select
        {{ dbt_ripple.text_literal(tested.name ~ '.' ~ column) }} as named,
        {{ dbt_ripple.text_literal(node_id) }} as unique_id,
        {{ dbt_ripple.text_literal(column) }} as column_name
    from latest
),

unknown as (
    select
        missing_names.named,
        missing_names.unique_id,
        missing_names.column_name,
        others.column_name as other_name,
        row_number() over (
            partition by missing_names.named
            order by {{ dbt_ripple.edit_distance('missing_names.column_name', 'others.column_name') }}, others.column_name
        ) as place
    from missing_names
    left join columns as found
        on
            missing_names.unique_id = found.unique_id
            and missing_names.column_name = found.column_name
    left join columns as others on missing_names.unique_id = others.unique_id
    where found.unique_id is null
),

{% if columns -%}
answers as (
    select
        named.named,
        named.unique_id,
        named.column_name,
        max(case when reached.is_value then 2 when reached.unique_id is not null then 1 else 0 end) as answer
    from named
    left join reached
        on
            named.unique_id = reached.unique_id
            and (
                named.column_name = reached.column_name
                or named.column_name = '*'
            )
            and not (
                reached.unique_id = {{ dbt_ripple.text_literal(node_id) }}
                and reached.column_name = {{ dbt_ripple.text_literal(column) }}
            )
    group by named.named, named.unique_id, named.column_name
),
{%- endif %}

gaps as (
    select distinct
        nodes.unique_id,
        nodes.name,
        nodes.analysis_reason
    from (
        select
            unique_id,
            column_name
        from reached
        {%- if kind == 'comes_from' and not only %}
        {#- What is found otherwise is found; and what is not, its answer says. #}
        where 1 = 0
        {%- elif kind == 'not_from' and columns %}
        where exists (select 1 from answers where answer != 2)
        {%- endif %}
        {%- if asks_pii %}
        union all
        select
            unique_id,
            column_name
        from unmasked
        where not exists (
            select 1
            from personal
            where
                personal.unique_id = unmasked.unique_id
                and personal.column_name = unmasked.column_name
        )
        {%- endif %}
    ) as passed
    inner join nodes
        on
            passed.unique_id = nodes.unique_id
            and nodes.is_unread = 1
    {%- if only %}
    left join named
        on
            passed.unique_id = named.unique_id
            and named.column_name in (passed.column_name, '*')
    where named.unique_id is null
    {%- endif %}
),

problems as (
    select
        {{ dbt.concat([
            "'there is no '", 'named',
            "case when other_name is null then ' in the lineage that was loaded: run dbt-ripple load' "
            ~ "else ': did you mean ' end",
            "coalesce(other_name, '')", "case when other_name is null then '' else '?' end",
        ]) }} as problem,
        unique_id,
        column_name
    from unknown
    where place = 1

    union all

    select
        {{ dbt.concat([
            "'whether the column comes from what is asked is not known, because '", 'name',
            "' cannot be analysed: '", "coalesce(analysis_reason, '')"
        ]) }} as problem,
        unique_id,
        {{ none_text }} as column_name
    from gaps
    {%- if columns and kind == 'comes_from' %}

    union all

    select
        {{ dbt.concat([
            "case when answer = 0 then 'does not come from ' else 'it is not known whether it comes from ' end", 'named'
        ]) }} as problem,
        unique_id,
        column_name
    from answers
    where
        answer < 2
        and named not in (select named from unknown)
    {%- elif columns %}

    union all

    select
        {{ dbt.concat(["'comes from '", 'named']) }} as problem,
        unique_id,
        column_name
    from answers
    where answer = 2
    {%- endif %}
    {%- if only %}

    union all

    select
        {{ dbt.concat(["'comes from '", 'nodes.name', "'.'", 'reached.column_name', "', too'"]) }} as problem,
        reached.unique_id,
        reached.column_name
    from reached
    inner join nodes
        on
            reached.unique_id = nodes.unique_id
            and nodes.is_given = 1
            and nodes.is_unread = 0
    left join named
        on
            reached.unique_id = named.unique_id
            and named.column_name in (reached.column_name, '*')
    where
        reached.is_value
        and named.unique_id is null
    {%- endif %}
    {%- if asks_pii %}

    union all

    select
        {{ dbt.concat(["'comes from '", 'nodes.name', "'.'", 'personal.column_name', "', which is '", 'personal.pii']) }}
            as problem,
        personal.unique_id,
        personal.column_name
    from unmasked
    inner join personal
        on
            unmasked.unique_id = personal.unique_id
            and unmasked.column_name = personal.column_name
            and personal.origin = 'declared'
    inner join nodes on personal.unique_id = nodes.unique_id
    where unmasked.is_value
    {%- endif %}
)

select
    problem,
    unique_id,
    column_name
from problems
{% endmacro %}


{#- What a column is made of, up to the columns of `stop`. -#}
{% macro lineage_walk(node_id, column, stop, unmasked, steps) %}
{%- set starts -%}
select
    snapshot_id,
    {{ dbt_ripple.text_literal(node_id) }} as unique_id,
    {{ dbt_ripple.text_literal(column) }} as column_name
from latest
{%- endset -%}
{%- set above -%}
select
    lineage.snapshot_id,
    lineage.child_id as parent_id,
    lineage.child_column as parent_column,
    lineage.parent_id as child_id,
    lineage.parent_column as child_column,
    max(lineage.is_value) as is_value
from lineage
{%- if stop %}
left join {{ stop }} as stops
    on
        lineage.child_id = stops.unique_id
        and stops.column_name in (lineage.child_column, '*')
{%- endif %}
where
    1 = 1
    {{ 'and stops.unique_id is null' if stop }}
    {{ 'and not lineage.masking' if unmasked }}
group by
    lineage.snapshot_id,
    lineage.child_id,
    lineage.child_column,
    lineage.parent_id,
    lineage.parent_column
{%- endset -%}
{{- dbt_ripple.walk_columns(starts, above, steps) -}}
{% endmacro %}
