-- grain: execution_id, part
-- reads: selected_executions, stg_program_executions
-- review: all of the rehearsal of the whole run takes less than 15 s on two idle cores
-- about: the selected subject
with

programs as (
    select
        stg_program_executions.execution_id,
        stg_program_executions.stage,
        stg_program_executions.duration_ns,
        regexp_replace(stg_program_executions.label, ', controller \d+$', '') as part,
        epoch_ns(try_cast(stg_program_executions.started_at as timestamp_ns))
            as started_ns
    from stg_program_executions
    inner join selected_executions
        on stg_program_executions.execution_id = selected_executions.execution_id
    where
        stg_program_executions.program in (
            'model.programs.train_controller', 'model.programs.compare_controllers'
        )
        and stg_program_executions.stage in ('qualify_tpu', 'rehearse_target')
),

parts as (
    select
        *,
        started_ns + duration_ns as ended_ns
    from programs
    union all by name
    select
        * replace ('all' as part),
        started_ns + duration_ns as ended_ns
    from programs
),

durations as (
    select
        -- identity
        execution_id,
        stage,
        part,
        -- what ran at once
        count(*) as processes,
        -- time
        min(started_ns) as started_ns,
        (max(ended_ns) - min(started_ns)) / 1e9 as seconds,
        sum(duration_ns) / 1e9 as process_seconds
    from parts
    group by execution_id, stage, part
)

select * from durations
order by execution_id, started_ns, part
