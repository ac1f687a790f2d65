-- grain: execution_id, row_number
-- reads: stg_drilled_requirements, selected_executions
-- review: what each requirement read, with each fault and without, in the newest drills
-- about: the selected subject
with

drilled as (
    select * from stg_drilled_requirements
),

executions as (
    select execution_id from selected_executions
    where is_intact
),

newest as (
    select drilled.*
    from drilled
    inner join executions
        on drilled.execution_id = executions.execution_id
),

correct as (
    select
        execution_id,
        drilled_stage,
        requirement_id,
        claim,
        measure,
        rows_met as correct_rows_met,
        rows_unmet as correct_rows_unmet,
        worst_value as correct_value,
        worst_margin as correct_margin
    from newest
    where
        fault = ''
        and failure = ''
),

beside as (
    select
        newest.*,
        coalesce(correct.correct_rows_met, 0) as correct_rows_met,
        coalesce(correct.correct_rows_unmet, 0) as correct_rows_unmet,
        correct.correct_value,
        correct.correct_margin,
        -- what a requirement finds without a fault, no fault has turned
        newest.fault <> ''
        and newest.rows_unmet > 0
        and coalesce(correct.correct_rows_unmet, 0) = 0
        and coalesce(correct.correct_rows_met, 0) > 0 as is_turned
    from newest
    left join correct
        on
            newest.execution_id = correct.execution_id
            and newest.drilled_stage = correct.drilled_stage
            and newest.requirement_id = correct.requirement_id
            and newest.claim = correct.claim
            and newest.measure = correct.measure
)

select * from beside
order by execution_id, row_number
