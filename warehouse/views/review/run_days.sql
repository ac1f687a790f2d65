-- grain: run_date, host, flow
-- reads: runs
-- review: every scheduled day has its runs, and they are completed
with

runs as (
    select * from runs
),

counted as (
    select
        left(started_at, 10) as run_date,
        host,
        flow,
        count(*) as runs,
        count(*) filter (where status = 'completed') as completed,
        count(*) filter (where status = 'failed') as failed,
        count(*) filter (where status = 'interrupted') as interrupted,
        count(*) filter (where status = 'running') as running,
        count(*) filter (where reused_stages > 0 and executed_stages = 0)
            as fully_reused,
        sum(duration_ns) / 1e9 as seconds
    from runs
    group by left(started_at, 10), host, flow
)

select * from counted
order by run_date desc, host, flow
