-- grain: baseline_id
-- reads: raw.accepted_baselines, raw.runs
-- review: the newest of each flow, preset, data and system is what later runs meet
with

baselines as (
    select * from raw.accepted_baselines
),

runs as (
    select * from raw.runs
),

described as (
    select
        -- identity
        baselines.baseline_id,
        baselines.run_id,
        -- scope
        baselines.flow,
        baselines.preset,
        baselines.data_sha256,
        -- a user's file; the built-in system has none
        baselines.implementation,
        row_number() over (
            partition by
                baselines.flow,
                baselines.preset,
                baselines.data_sha256,
                baselines.implementation
            order by baselines.accepted_at desc, baselines.baseline_id desc
        ) = 1 as is_current,
        -- the decision
        baselines.accepted_at,
        baselines.host,
        baselines.note,
        -- the run
        runs.subject,
        runs.started_at as run_started_at,
        runs.run_id is not null as is_run_there
    from baselines
    left join runs
        on baselines.run_id = runs.run_id
)

select * from described
order by accepted_at desc, baseline_id desc
