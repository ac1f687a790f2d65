-- grain: work, release_policy
-- reads: selected_executions, stg_target_timings, verdicts
-- review: no row until signs, answers, numbers, configuration and restart of the target
-- review: are accepted; how fast a wrong result came is nobody's business
-- about: the selected subject
with

executions as (
    select * from selected_executions
),

timings as (
    select stg_target_timings.*
    from stg_target_timings
    inner join executions
        on stg_target_timings.execution_id = executions.execution_id
),

verdicts as (
    select * from verdicts
    where review_task = 5
),

accepted as (
    select count(*) as claims
    from verdicts
    where claim_number between 1 and 5 and starts_with(verdict, 'accept')
),

summary as (
    select
        timings.work,
        timings.release_policy,
        count(*) as samples,
        -- nanoseconds
        min(timings.duration_ns) as least_ns,
        quantile_disc(timings.duration_ns, 0.5) as median_ns,
        quantile_disc(timings.duration_ns, 0.95) as high_ns,
        any_value(timings.timer) as timer
    from timings
    cross join accepted
    where accepted.claims = 5
    group by timings.work, timings.release_policy
)

select * from summary
order by work, release_policy
