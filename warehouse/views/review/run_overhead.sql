-- grain: run_id
-- reads: runs, overhead
-- review: recording, hashing and keys together are under 5 % of a first run
with

runs as (
    select * from runs
),

stages as (
    select * from overhead
),

summed as (
    select
        run_id,
        sum(program_seconds) as program_seconds,
        sum(recording_seconds) as recording_seconds,
        sum(hashing_seconds) as hashing_seconds,
        sum(key_seconds) as key_seconds,
        sum(prefect_seconds) as prefect_seconds,
        sum(waiting_seconds) as waiting_seconds
    from stages
    group by run_id
),

described as (
    select
        -- identity
        runs.run_id,
        runs.flow,
        runs.preset,
        runs.status,
        runs.started_at,
        runs.executed_stages,
        runs.reused_stages,
        -- seconds by the clock, from the start of the process
        runs.elapsed_ns / 1e9 as run_seconds,
        runs.starting_ns / 1e9 as starting_seconds,
        runs.ending_ns / 1e9 as ending_seconds,
        -- seconds of all stages; two may run side by side
        summed.program_seconds,
        summed.recording_seconds,
        summed.hashing_seconds,
        summed.key_seconds,
        summed.prefect_seconds,
        summed.waiting_seconds,
        (summed.recording_seconds + summed.hashing_seconds + summed.key_seconds)
        / nullif(runs.elapsed_ns / 1e9, 0) as evidence_share
    from runs
    left join summed
        on runs.run_id = summed.run_id
),

told as (
    select
        *,
        case
            when status = 'running' then 'The run is still going on.'
            when run_seconds is null then 'The run did not record where its time went.'
            when evidence_share is null then 'No stage was done.'
            else
                format(
                    'Of {:.1f} s, {:.1f} s passed before the first stage. Programs took'
                    || ' {:.1f} s, recording {:.2f} s, hashing {:.2f} s, keys {:.2f} s'
                    || ' and Prefect {:.2f} s: recording, hashing and keys are {:.1f} %'
                    || ' of the run.',
                    run_seconds,
                    starting_seconds,
                    program_seconds,
                    recording_seconds,
                    hashing_seconds,
                    key_seconds,
                    prefect_seconds,
                    100 * evidence_share
                )
        end as sentence
    from described
)

select * from told
order by started_at desc, run_id
