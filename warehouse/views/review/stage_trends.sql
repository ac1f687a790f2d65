-- grain: run_id, stage
-- reads: used_executions
-- review: an executed stage takes as long as it did before on the same machine
with

executed as (
    select * from used_executions
    where state = 'executed'
),

timed as (
    select
        -- the run
        run_id,
        run_started_at,
        flow,
        preset,
        is_declared,
        host,
        -- the stage
        stage,
        execution_id,
        duration_ns / 1e9 as stage_seconds,
        program_ns / 1e9 as program_seconds
    from executed
),

moved as (
    select
        *,
        lag(stage_seconds) over history as previous_seconds,
        median(stage_seconds) over (
            partition by stage, preset, is_declared, host
            order by run_started_at, run_id
            rows between 10 preceding and 1 preceding
        ) as typical_seconds
    from timed
    window history as (
        partition by stage, preset, is_declared, host
        order by run_started_at, run_id
    )
),

described as (
    select
        *,
        stage_seconds / nullif(typical_seconds, 0) as ratio
    from moved
)

select * from described
order by run_started_at desc, run_id, stage
