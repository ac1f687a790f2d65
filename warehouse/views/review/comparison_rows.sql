-- grain: stage, source, claim, measure, case_name, occurrence
-- reads: comparison_stages, compared_rows
-- review: exact values are equal, limited ones met on both sides; drift says how far
-- kept: all
with

stages as (
    select * from comparison_stages
),

compared as (
    select
        *,
        -- everything in which two fresh executions of one subject must not differ
        coalesce(
            cast(value_count as varchar),
            cast(value_real as varchar),
            case
                when evidence_kind = 'refusal' then coalesce(measured, 'not refused')
                else measured || coalesce(nullif(' ' || detail, ' '), '')
            end
        ) as value_text,
        coalesce(cast(value_count as double), value_real) as value_number
    from compared_rows
),

before as (
    select * from compared
    where side = 'before'
),

later as (
    select * from compared
    where side = 'after'
),

paired as (
    select
        coalesce(later.stage, before.stage) as stage,
        coalesce(later.source, before.source) as source,
        coalesce(later.claim, before.claim) as claim,
        coalesce(later.measure, before.measure) as measure,
        coalesce(later.case_name, before.case_name) as case_name,
        coalesce(later.occurrence, before.occurrence) as occurrence,
        coalesce(later.kind, before.kind) as kind,
        coalesce(later.unit, before.unit) as unit,
        coalesce(before.has_value, false) as has_before,
        coalesce(later.has_value, false) as has_after,
        coalesce(later.status_rank, 0) - coalesce(before.status_rank, 0) as got_worse,
        before.value_text as before_value,
        later.value_text as after_value,
        -- how far it moved, in its unit and as a share of its limit
        later.value_number - before.value_number as drift,
        (later.value_number - before.value_number)
        / nullif(abs(later.limit_value), 0) as drift_share
    from before
    full join later
        on
            before.stage = later.stage
            and before.source = later.source
            and before.claim = later.claim
            and before.measure = later.measure
            and before.case_name = later.case_name
            and before.occurrence = later.occurrence
),

held as (
    select
        paired.*,
        stages.stage_number,
        stages.result as stage_result
    from paired
    inner join stages
        on paired.stage = stages.stage
),

judged as (
    select
        stage_number,
        * exclude (has_before, has_after, got_worse, stage_number, stage_result),
        case
            when stage_result <> 'recomputed' then stage_result
            when not (has_before or has_after) then 'no value'
            when not has_after then 'missing after'
            when got_worse > 0 and kind = 'timing' then 'worse timing'
            when got_worse > 0 then 'worse'
            when not has_before then 'missing before'
            when got_worse < 0 then 'better'
            when kind in ('timing', 'reported') then 'shown'
            when before_value = after_value then 'equal'
            when kind = 'exact' then 'differs'
            else 'drifted'
        end as result
    from held
)

select * from judged
order by stage_number, claim, measure, case_name, source, occurrence
