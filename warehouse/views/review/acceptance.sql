-- grain: run_id
-- reads: selected_run, subject_components, subject_stages, subject_verdicts, selection
-- reads: damage
-- review: no problem; without one the selected run may become the baseline of its scope
with

run as (
    select * from selected_run
),

digests as (
    select * from subject_components
),

-- the run by itself; it is there where runs are compared
stages as (
    select * from subject_stages
    where subject = 'after'
),

damaged as (
    select
        path || ' ' || problem as what,
        path
    from damage
    where
        execution_id in (select stages.execution_id from stages)
        or run_id in (select run.run_id from run)
),

-- alone, or as its subject is shown: neither may be in doubt
revised as (
    select
        subject_verdicts.claim,
        subject_verdicts.next_step,
        subject_verdicts.review_task,
        subject_verdicts.claim_number
    from subject_verdicts
    inner join selection
        on subject_verdicts.subject in (selection.subject, 'after')
    where subject_verdicts.verdict = 'revise'
),

digest as (
    select
        coalesce(any_value(value) filter (where component = 'data'), '')
            as data_sha256,
        coalesce(any_value(value) filter (where component = 'implementation'), '')
            as implementation
    from digests
),

counted as (
    select count(*) as stage_count
    from stages
),

first_damage as (
    select arg_min(what, path) as damage
    from damaged
),

first_revision as (
    select
        arg_min(
            claim || ' reads revise, for this run or another of its subject: '
            || next_step,
            (review_task, claim_number)
        ) as revision
    from revised
),

doubts as (
    select
        run.*,
        digest.data_sha256,
        digest.implementation,
        counted.stage_count,
        first_damage.damage,
        first_revision.revision
    from run
    cross join digest
    cross join counted
    cross join first_damage
    cross join first_revision
),

judged as (
    select
        run_id,
        flow,
        preset,
        data_sha256,
        implementation,
        case
            when status = 'running'
                then 'Run ' || run_id || ' is still running; accept it when it is done.'
            when status <> 'completed'
                then
                    'Run ' || run_id || ' is ' || status
                    || ', and only a completed run can be a baseline: ' || message
            when damage is not null
                then
                    'Run ' || run_id || ' is damaged (' || damage
                    || '); run again, and accept what has every byte.'
            when stage_count = 0
                then 'Run ' || run_id || ' has no stage; there is nothing to accept.'
            when revision is not null
                then 'Claim ' || revision || '; accept a run without such a claim.'
            else ''
        end as problem
    from doubts
)

select * from judged
