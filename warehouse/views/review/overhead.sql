-- grain: run_id, stage
-- reads: raw.runs, raw.run_links
-- review: programs take most of an executed stage; the rest of it stays small
with

runs as (
    select * from raw.runs
),

links as (
    select * from raw.run_links
),

parts as (
    select
        -- identity
        links.run_id,
        links.stage_number,
        links.stage,
        -- what happened
        links.state,
        runs.preset,
        runs.started_at as run_started_at,
        -- seconds of the stage, each instant in one part
        links.duration_ns / 1e9 as stage_seconds,
        links.program_ns / 1e9 as program_seconds,
        links.recording_ns / 1e9 as recording_seconds,
        links.hashing_ns / 1e9 as hashing_seconds,
        links.key_ns / 1e9 as key_seconds,
        -- what is left: Prefect, and a little Python of the stage itself
        (
            links.duration_ns - links.program_ns - links.recording_ns
            - links.hashing_ns - links.key_ns
        ) / 1e9 as prefect_seconds,
        -- seconds before it, for a free thread and for Prefect
        links.waiting_ns / 1e9 as waiting_seconds
    from links
    inner join runs
        on links.run_id = runs.run_id
),

shares as (
    select
        *,
        (recording_seconds + hashing_seconds + key_seconds)
        / nullif(program_seconds, 0) as share_of_programs,
        if(program_seconds is null, 'recorded by a version without parts', '')
            as null_reason
    from parts
)

select * from shares
order by run_started_at desc, run_id, stage_number
