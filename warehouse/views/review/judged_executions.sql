-- grain: preset, is_declared, execution_id
-- reads: raw.run_links, raw.runs, raw.executions, subjects, subject_stages
-- review: what the contract asks of an execution depends on who used it: on the preset,
-- review: and on whether corpus and settings are the declared ones
with

links as (
    select * from raw.run_links
),

runs as (
    select * from raw.runs
),

executions as (
    select * from raw.executions
),

subjects as (
    select * from subjects
),

stages as (
    select * from subject_stages
),

used as (
    select
        runs.preset,
        runs.is_declared,
        links.execution_id,
        links.stage
    from links
    inner join runs
        on links.run_id = runs.run_id
    union
    select
        subjects.preset,
        subjects.is_declared,
        stages.execution_id,
        stages.stage
    from stages
    inner join subjects
        on stages.subject = subjects.subject
),

-- a link may name what is gone, or what another stage made
there as (
    select used.*
    from used
    inner join executions
        on
            used.execution_id = executions.execution_id
            and used.stage = executions.stage
)

select * from there
order by preset, is_declared, execution_id
