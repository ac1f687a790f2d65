-- grain: kind, name
-- reads: comparison_stages, raw.key_components, compared_sides
-- review: what is another system, configuration, data or runtime than before; no row
-- review: where the two runs are about the same subject
with

stages as (
    select * from comparison_stages
),

components as (
    select
        *,
        split_part(component, ':', 1) as kind,
        substr(component, instr(component, ':') + 1) as name
    from raw.key_components
),

sides as (
    select * from compared_sides
),

used as (
    select
        'before' as side,
        before_execution_id as execution_id
    from stages
    union all
    select
        'after' as side,
        after_execution_id as execution_id
    from stages
),

-- what stages made is a consequence and no change of the subject
held as (
    select
        used.side,
        components.kind,
        components.name,
        string_agg(distinct components.value, ' and ' order by components.value)
            as value
    from used
    inner join components
        on used.execution_id = components.execution_id
    where components.kind not in ('artifact', 'stage')
    group by used.side, components.kind, components.name
),

parts as (
    select
        kind,
        name,
        any_value(value) filter (where side = 'before') as before_value,
        any_value(value) filter (where side = 'after') as after_value
    from held
    group by kind, name
    having before_value is distinct from after_value
),

corpora as (
    select
        'data' as kind,
        'corpus' as name,
        any_value(data_sha256) filter (where side = 'before') as before_value,
        any_value(data_sha256) filter (where side = 'after') as after_value
    from sides
    having count(distinct data_sha256) > 1
),

changes as (
    select * from corpora
    union all
    select * from parts
),

numbered as (
    select
        -- what a user sets comes first
        row_number() over (
            order by
                list_position(
                    [
                        'implementation', 'config', 'data', 'source', 'distribution',
                        'runtime', 'machine'
                    ],
                    kind
                ),
                kind,
                name
        ) as change_number,
        *
    from changes
)

select * from numbered
order by change_number
