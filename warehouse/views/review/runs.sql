-- grain: run_id
-- reads: raw.runs, raw.run_links
-- review: the newest is completed, and reuses every stage when nothing changed
with

runs as (
    select * from raw.runs
),

links as (
    select * from raw.run_links
),

stage_counts as (
    select
        run_id,
        count(*) filter (where state = 'executed') as executed_stages,
        count(*) filter (where state = 'reused') as reused_stages
    from links
    group by run_id
),

described as (
    select
        -- identity
        runs.run_id,
        runs.flow,
        runs.subject,
        runs.preset,
        runs.is_declared,
        -- how it went; a run that wrote no end and is not running was killed
        coalesce(runs.status, 'interrupted') as status,
        if(runs.status is null, 'No end is recorded.', runs.message) as message,
        -- a run writes which stages it used when it ends
        if(runs.finished_at is null, null, coalesce(stage_counts.executed_stages, 0))
            as executed_stages,
        if(runs.finished_at is null, null, coalesce(stage_counts.reused_stages, 0))
            as reused_stages,
        -- when and where
        runs.started_at,
        runs.finished_at,
        epoch_ns(try_cast(runs.finished_at as timestamp_ns))
        - epoch_ns(try_cast(runs.started_at as timestamp_ns)) as duration_ns,
        runs.elapsed_ns,
        runs.starting_ns,
        runs.ending_ns,
        runs.host,
        runs.process_id,
        -- with what
        runs.configuration
    from runs
    left join stage_counts
        on runs.run_id = stage_counts.run_id
)

select * from described
order by started_at desc, run_id
