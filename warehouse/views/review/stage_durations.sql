-- grain: stage
-- reads: selected_executions, stg_program_executions
-- review: programs take most of a stage; what is around them stays small
-- about: the selected subject
with

programs as (
    select
        execution_id,
        cast(sum(duration_ns) as bigint) as program_ns,
        count(*) as programs
    from stg_program_executions
    group by execution_id
),

stages as (
    select
        selected_executions.stage,
        selected_executions.state,
        selected_executions.reason,
        selected_executions.execution_id,
        selected_executions.started_at,
        coalesce(programs.programs, 0) as programs,
        -- seconds
        coalesce(programs.program_ns, 0) / 1e9 as program_seconds,
        epoch_ns(try_cast(selected_executions.finished_at as timestamp_ns))
        - epoch_ns(try_cast(selected_executions.started_at as timestamp_ns)) as stage_ns
    from selected_executions
    left join programs
        on selected_executions.execution_id = programs.execution_id
),

durations as (
    select
        * exclude (stage_ns),
        -- programs of one stage may run side by side, so the rest is at least 0; the
        -- view overhead has its parts
        greatest(stage_ns / 1e9 - program_seconds, 0) as around_seconds,
        stage_ns / 1e9 as stage_seconds
    from stages
)

select * from durations
order by started_at, stage
