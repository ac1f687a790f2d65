-- grain: subject
-- reads: raw.runs, raw.selection, raw.compared_runs
-- review: one row for each system, configuration, data and runtime that was ever run
-- review: and one for each side of a comparison
-- kept: all
with

every_run as (
    select * from raw.runs
),

selection as (
    select * from raw.selection
),

-- without their rows, the other subjects would read not demonstrated
runs as (
    select every_run.*
    from every_run
    inner join selection
        on selection.has_history or every_run.subject = selection.subject
),

known as (
    select
        subject,
        arg_max(preset, started_at) as preset,
        arg_max(is_declared, started_at) as is_declared,
        count(*) as run_count,
        coalesce(bool_or(status = 'completed'), false) as has_completed_run,
        arg_max(run_id, started_at) as newest_run_id,
        max(started_at) as newest_run_at
    from runs
    group by subject
),

-- a store without runs still shows what has to be demonstrated
nothing_run as (
    select
        subject,
        '' as preset,
        false as is_declared,
        0 as run_count,
        false as has_completed_run,
        '' as newest_run_id,
        '' as newest_run_at
    from selection
    where subject = ''
),

compared as (
    select * from raw.compared_runs
),

-- what only a declared system has to show is asked of both sides or of none
sides as (
    select
        compared.side as subject,
        every_run.preset,
        bool_and(every_run.is_declared) over () as is_declared,
        1 as run_count,
        coalesce(every_run.status = 'completed', false) as has_completed_run,
        every_run.run_id as newest_run_id,
        every_run.started_at as newest_run_at
    from compared
    inner join every_run
        on compared.run_id = every_run.run_id
),

every_subject as (
    select * from known
    union all
    select * from sides
    union all
    select * from nothing_run
)

select * from every_subject
order by newest_run_at desc, subject
