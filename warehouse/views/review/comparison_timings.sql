-- grain: what, case_name
-- reads: comparison_stages, stg_timings, stg_updates, stg_trace_regions, raw.executions
-- review: both spreads side by side, in nanoseconds; shown and not judged
with

stages as (
    select * from comparison_stages
),

executions as (
    select * from raw.executions
),

samples as (
    select
        execution_id,
        phase || ' ' || endpoint as what,
        release_policy as case_name,
        duration_ns
    from stg_timings
    union all
    select
        execution_id,
        'update' as what,
        run_label as case_name,
        duration_ns
    from stg_updates
    union all
    select
        execution_id,
        'traced until ready' as what,
        region as case_name,
        ready_ns as duration_ns
    from stg_trace_regions
    union all
    select
        execution_id,
        'stage' as what,
        stage as case_name,
        epoch_ns(try_cast(finished_at as timestamp_ns))
        - epoch_ns(try_cast(started_at as timestamp_ns)) as duration_ns
    from executions
),

measured as (
    select
        stages.stage_number,
        stages.result as stage_result,
        samples.what,
        samples.case_name,
        samples.execution_id = stages.before_execution_id as is_before,
        samples.execution_id = stages.after_execution_id as is_after,
        samples.duration_ns
    from stages
    inner join samples
        on
            stages.before_execution_id = samples.execution_id
            or stages.after_execution_id = samples.execution_id
),

spread as (
    select
        min(stage_number) as stage_number,
        what,
        case_name,
        if(any_value(stage_result) = 'recomputed', 'shown', any_value(stage_result))
            as result,
        count(*) filter (where is_before) as before_samples,
        min(duration_ns) filter (where is_before) as before_least_ns,
        quantile_disc(duration_ns, 0.5) filter (where is_before) as before_median_ns,
        max(duration_ns) filter (where is_before) as before_largest_ns,
        count(*) filter (where is_after) as after_samples,
        min(duration_ns) filter (where is_after) as after_least_ns,
        quantile_disc(duration_ns, 0.5) filter (where is_after) as after_median_ns,
        max(duration_ns) filter (where is_after) as after_largest_ns
    from measured
    group by what, case_name
),

related as (
    select
        *,
        after_median_ns / nullif(before_median_ns, 0) as median_ratio
    from spread
)

select * from related
order by what = 'stage', stage_number, what, case_name
