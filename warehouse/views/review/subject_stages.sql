-- grain: subject, stage
-- reads: raw.run_links, raw.runs, raw.executions, raw.selection, raw.compared_runs
-- review: the newest execution of each stage that any run of the subject used
-- kept: all
with

links as (
    select * from raw.run_links
),

every_run as (
    select * from raw.runs
),

compared as (
    select * from raw.compared_runs
),

-- a side of a comparison rests on the executions of its one run
runs as (
    select
        run_id,
        subject,
        started_at
    from every_run
    union all
    select
        every_run.run_id,
        compared.side as subject,
        every_run.started_at
    from every_run
    inner join compared
        on every_run.run_id = compared.run_id
),

executions as (
    select * from raw.executions
),

selection as (
    select * from raw.selection
),

linked as (
    select
        runs.subject,
        links.stage,
        links.execution_id,
        links.key,
        links.run_id,
        links.state,
        links.reason,
        executions.host,
        executions.started_at,
        executions.finished_at,
        coalesce(executions.is_intact, false) as is_intact,
        coalesce(executions.problem, 'its commit record is missing or altered')
            as problem,
        -- an execution whose record is gone is as new as the run that used it
        coalesce(executions.committed_at, runs.started_at) as execution_order,
        coalesce(links.run_id = selection.run_id, false) as is_selected_run,
        runs.started_at as run_started_at
    from links
    inner join runs
        on links.run_id = runs.run_id
    left join executions
        on
            links.execution_id = executions.execution_id
            and links.stage = executions.stage
            and links.key = executions.key
    left join selection
        on links.run_id = selection.run_id
),

newest as (
    select * exclude (execution_order, is_selected_run, run_started_at)
    from linked
    qualify
        row_number() over (
            partition by subject, stage
            order by
                execution_order desc,
                execution_id desc,
                is_selected_run desc,
                run_started_at desc,
                run_id desc
        ) = 1
)

select * from newest
order by subject, stage
