-- grain: run_date, flow, stage
-- reads: raw.runs, raw.run_links, used_executions
-- review: what nothing changed is reused, except where a schedule computes all of it
with

runs as (
    select * from raw.runs
),

links as (
    select * from raw.run_links
),

used as (
    select * from used_executions
),

described as (
    select
        left(runs.started_at, 10) as run_date,
        runs.flow,
        links.stage,
        links.state = 'reused' as is_reused,
        links.duration_ns,
        used.execution_ns
    from runs
    inner join links
        on runs.run_id = links.run_id
    left join used
        on
            links.run_id = used.run_id
            and links.stage = used.stage
),

counted as (
    select
        run_date,
        flow,
        stage,
        count(*) as runs,
        count(*) filter (where is_reused) as reused,
        count(*) filter (where not is_reused) as executed,
        count(*) filter (where is_reused) / count(*) as reused_share,
        -- what it took, and what the reused executions had taken when they were made
        sum(duration_ns) / 1e9 as seconds,
        coalesce(
            sum(greatest(execution_ns - duration_ns, 0)) filter (where is_reused), 0
        ) / 1e9 as saved_seconds
    from described
    group by run_date, flow, stage
)

select * from counted
order by run_date desc, flow, stage
