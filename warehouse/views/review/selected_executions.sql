-- grain: stage
-- reads: subject_stages, raw.selection
-- review: the executions that the shown verdicts rest on, executed or reused
-- about: the selected subject
with

subject_stages as (
    select * from subject_stages
),

selection as (
    select * from raw.selection
),

selected as (
    select
        subject_stages.stage,
        subject_stages.execution_id,
        subject_stages.key,
        subject_stages.run_id,
        subject_stages.state,
        subject_stages.reason,
        subject_stages.started_at,
        subject_stages.finished_at,
        subject_stages.host,
        subject_stages.is_intact,
        subject_stages.problem
    from subject_stages
    inner join selection
        on subject_stages.subject = selection.subject
)

select * from selected
order by started_at, stage
