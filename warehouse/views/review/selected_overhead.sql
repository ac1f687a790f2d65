-- grain: stage
-- reads: overhead, raw.selection
-- review: the parts of each stage of the run that was asked for
-- about: the selected subject
with

stages as (
    select * from overhead
),

selection as (
    select * from raw.selection
),

selected as (
    select stages.*
    from stages
    inner join selection
        on stages.run_id = selection.run_id
),

rounded as (
    select
        stage_number,
        stage,
        state,
        -- seconds, to a thousandth
        round(stage_seconds, 3) as stage_seconds,
        round(program_seconds, 3) as program_seconds,
        round(recording_seconds, 3) as recording_seconds,
        round(hashing_seconds, 3) as hashing_seconds,
        round(key_seconds, 3) as key_seconds,
        round(prefect_seconds, 3) as prefect_seconds,
        round(waiting_seconds, 3) as waiting_seconds
    from selected
)

select * from rounded
order by stage_number
