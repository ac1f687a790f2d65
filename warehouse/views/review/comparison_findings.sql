-- grain: finding_number
-- reads: comparison_rows, comparison_artifacts, comparison_updates, comparison_verdicts
-- reads: comparison_stages
-- review: no row; each is something that must not differ and does, in the flow's order
-- kept: all
with

rows_apart as (
    select
        stage_number,
        3 as kind_order,
        'row' as kind,
        stage || ': claim ' || claim || ' ' || measure
        || coalesce(nullif(' ' || case_name, ' '), '') as place,
        result,
        before_value,
        after_value
    from comparison_rows
),

updates_apart as (
    select
        stage_number,
        1 as kind_order,
        'update' as kind,
        stage || ': ' || run_label || ' update ' || first_update || ' ' || first_kind
        || coalesce(nullif(' ' || first_leaf, ' '), '') as place,
        result,
        '' as before_value,
        differing || ' of ' || digests || ' digests differ' as after_value
    from comparison_updates
),

artifacts_apart as (
    select
        stage_number,
        2 as kind_order,
        'artifact' as kind,
        stage || ': ' || artifact as place,
        result,
        before_sha256 as before_value,
        after_sha256 as after_value
    from comparison_artifacts
),

stages_apart as (
    select
        stage_number,
        0 as kind_order,
        'stage' as kind,
        stage as place,
        result,
        before_execution_id as before_value,
        after_execution_id as after_value
    from comparison_stages
),

verdicts_apart as (
    select
        1000 as stage_number,
        0 as kind_order,
        'verdict' as kind,
        'claim ' || claim as place,
        result,
        before_verdict as before_value,
        after_verdict as after_value
    from comparison_verdicts
),

everything as (
    select * from stages_apart
    union all
    select * from updates_apart
    union all
    select * from artifacts_apart
    union all
    select * from rows_apart
    union all
    select * from verdicts_apart
),

lost_stages as (
    select stage_number from comparison_stages
    where result = 'missing after'
),

findings as (
    select
        row_number() over (order by stage_number, kind_order, place, result)
            as finding_number,
        kind,
        place,
        result,
        before_value,
        after_value
    from everything
    where
        result in ('differs', 'worse')
        -- where a whole stage is missing, its parts are not told one by one
        or (result = 'missing after' and kind in ('stage', 'verdict'))
        or (
            result = 'missing after'
            and stage_number not in (select lost_stages.stage_number from lost_stages)
        )
)

select * from findings
order by finding_number
