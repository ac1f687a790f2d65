-- grain: run_id, stage
-- reads: raw.runs, raw.run_links, raw.executions, raw.subject_digests
-- review: the intact executions that each run rests on; one that is gone gives no row
with

runs as (
    select * from raw.runs
),

links as (
    select * from raw.run_links
),

executions as (
    select * from raw.executions
    where is_intact
),

digests as (
    select * from raw.subject_digests
    where component = 'data'
),

used as (
    select
        -- the run
        runs.run_id,
        runs.flow,
        runs.preset,
        runs.is_declared,
        runs.started_at as run_started_at,
        digests.value as data_sha256,
        -- the execution
        links.stage,
        links.state,
        links.duration_ns,
        links.program_ns,
        executions.execution_id,
        executions.host,
        epoch_ns(try_cast(executions.finished_at as timestamp_ns))
        - epoch_ns(try_cast(executions.started_at as timestamp_ns)) as execution_ns
    from runs
    inner join links
        on runs.run_id = links.run_id
    inner join executions
        on
            links.execution_id = executions.execution_id
            and links.stage = executions.stage
            and links.key = executions.key
    left join digests
        on runs.run_id = digests.run_id
)

select * from used
order by run_started_at, run_id, stage
