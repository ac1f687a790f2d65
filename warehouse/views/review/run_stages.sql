-- grain: run_id, stage
-- reads: raw.run_links, raw.executions
-- review: each stage names the execution it used, which is there and intact
with

links as (
    select * from raw.run_links
),

executions as (
    select * from raw.executions
),

described as (
    select
        -- identity
        links.run_id,
        links.stage_number,
        links.stage,
        -- what happened
        links.state,
        links.reason,
        links.duration_ns,
        links.waiting_ns,
        links.program_ns,
        links.recording_ns,
        links.hashing_ns,
        links.key_ns,
        -- the execution
        links.execution_id,
        links.key,
        executions.finished_at,
        executions.host,
        coalesce(executions.is_intact, false) as is_intact,
        coalesce(executions.problem, 'its commit record is missing or altered')
            as problem
    from links
    left join executions
        on links.execution_id = executions.execution_id
)

select * from described
order by run_id, stage_number
