-- grain: run_id, endpoint, release_policy, phase
-- reads: used_executions, stg_timings
-- review: a median moves by less than its spread on one machine; reported, never judged
with

used as (
    select * from used_executions
),

timings as (
    select * from stg_timings
),

summary as (
    select
        execution_id,
        endpoint,
        release_policy,
        phase,
        count(*) as samples,
        -- nanoseconds
        min(duration_ns) as least_ns,
        quantile_disc(duration_ns, 0.5) as median_ns,
        quantile_disc(duration_ns, 0.95) as high_ns
    from timings
    group by execution_id, endpoint, release_policy, phase
),

timed as (
    select
        -- the run
        used.run_id,
        used.run_started_at,
        used.preset,
        used.is_declared,
        used.data_sha256,
        used.host,
        used.execution_id,
        -- the times
        summary.endpoint,
        summary.release_policy,
        summary.phase,
        summary.samples,
        summary.least_ns,
        summary.median_ns,
        summary.high_ns,
        (summary.high_ns - summary.least_ns) / summary.median_ns as spread
    from used
    inner join summary
        on used.execution_id = summary.execution_id
),

-- times of two machines say nothing about each other
moved as (
    select
        *,
        lag(median_ns) over history as previous_median_ns,
        lag(execution_id) over history as previous_execution_id
    from timed
    window history as (
        partition by
            preset, is_declared, data_sha256, host, endpoint, release_policy, phase
        order by run_started_at, run_id
    )
),

described as (
    select
        * exclude (previous_execution_id),
        median_ns / nullif(previous_median_ns, 0) as ratio,
        coalesce(execution_id <> previous_execution_id, true) as is_recomputed
    from moved
)

select * from described
order by run_started_at desc, run_id, phase, endpoint, release_policy
