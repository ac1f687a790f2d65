-- grain: flow, preset, is_declared, data_sha256, implementation
-- reads: runs, subject_results, raw.subject_digests
-- review: no run since the last one whose subject has nothing to revise
with

runs as (
    select * from runs
),

subjects as (
    select * from subject_results
),

digests as (
    select
        run_id,
        any_value(value) filter (where component = 'data') as data_sha256,
        any_value(value) filter (where component = 'implementation')
            as implementation
    from raw.subject_digests
    group by run_id
),

described as (
    select
        runs.run_id,
        runs.flow,
        runs.preset,
        runs.is_declared,
        coalesce(digests.data_sha256, '') as data_sha256,
        -- a user's file; the built-in system has none
        coalesce(digests.implementation, '') as implementation,
        (runs.started_at, runs.run_id) as run_order,
        runs.status = 'completed' and subjects.revised = 0 as is_clean,
        runs.status = 'completed' and subjects.is_accepted as is_accepted
    from runs
    left join subjects
        on runs.subject = subjects.subject
    left join digests
        on runs.run_id = digests.run_id
),

last_ones as (
    select
        flow,
        preset,
        is_declared,
        data_sha256,
        implementation,
        count(*) as runs,
        arg_max(run_id, run_order) as newest_run_id,
        arg_max(run_id, run_order) filter (where is_clean) as last_clean_run_id,
        max(run_order) filter (where is_clean) as clean_order,
        arg_max(run_id, run_order) filter (where is_accepted) as last_accepted_run_id,
        max(run_order) filter (where is_accepted) as accepted_order
    from described
    group by flow, preset, is_declared, data_sha256, implementation
),

counted as (
    select
        last_ones.flow,
        last_ones.preset,
        last_ones.is_declared,
        last_ones.data_sha256,
        last_ones.implementation,
        last_ones.runs,
        last_ones.newest_run_id,
        -- completed, and no claim of its subject is to be revised
        last_ones.last_clean_run_id,
        count(*) filter (
            where described.run_order > last_ones.clean_order
            or last_ones.clean_order is null
        ) as runs_since_clean,
        -- completed, and every claim of its subject is accepted
        last_ones.last_accepted_run_id,
        count(*) filter (
            where described.run_order > last_ones.accepted_order
            or last_ones.accepted_order is null
        ) as runs_since_accepted
    from last_ones
    inner join described
        on
            last_ones.flow = described.flow
            and last_ones.preset = described.preset
            and last_ones.is_declared = described.is_declared
            and last_ones.data_sha256 = described.data_sha256
            and last_ones.implementation = described.implementation
    group by all
)

select * from counted
order by
    newest_run_id desc, flow, preset, is_declared, data_sha256, implementation
