-- grain: endpoint, release_policy, phase
-- reads: selected_executions, stg_timings
-- review: at least 30 warm samples in at least 3 processes; reported, never judged
-- about: the selected subject
with

timings as (
    select stg_timings.*
    from stg_timings
    inner join selected_executions
        on stg_timings.execution_id = selected_executions.execution_id
),

summary as (
    select
        endpoint,
        release_policy,
        phase,
        count(distinct process) as processes,
        count(*) as samples,
        -- nanoseconds
        min(duration_ns) as least_ns,
        quantile_disc(duration_ns, 0.5) as median_ns,
        quantile_disc(duration_ns, 0.95) as high_ns,
        max(duration_ns) as largest_ns,
        any_value(timer) as timer
    from timings
    group by endpoint, release_policy, phase
)

select * from summary
order by phase, endpoint desc, release_policy = 'fp32' desc, release_policy
