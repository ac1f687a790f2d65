-- grain: subject, claim
-- reads: subjects, raw.claims, current_calibration, claim_steps
-- review: one verdict for each claim of the contract, also for one nobody measured
-- kept: all
with

subjects as (
    select * from subjects
),

claims as (
    select * from raw.claims
),

drilled as (
    select
        subject,
        claim
    from current_calibration
),

steps as (
    select * from claim_steps
),

counted as (
    select
        subject,
        claim,
        count(*) filter (where status = 'met') as rows_met,
        count(*) filter (where status in ('unmet', 'invalid')) as rows_unmet,
        count(*) filter (where status in ('missing', 'absent')) as rows_missing,
        bool_or(relation <> 'reported') as is_judged,
        arg_min(step, (step_order, requirement_id, case_name))
        filter (where status <> 'met') as next_step
    from steps
    group by subject, claim
),

judged as (
    select
        -- identity
        subjects.subject,
        claims.review_task,
        claims.claim_number,
        claims.claim,
        claims.statement,
        -- verdict: the order of the conditions is the rule
        case
            when counted.rows_unmet > 0 then 'revise'
            when counted.rows_missing > 0 then 'not demonstrated'
            when coalesce(counted.rows_met, 0) = 0 then 'not demonstrated'
            when counted.is_judged and drilled.claim is null then 'accept (undrilled)'
            else 'accept'
        end as verdict,
        coalesce(counted.rows_met, 0) as rows_met,
        coalesce(counted.rows_unmet, 0) as rows_unmet,
        coalesce(counted.rows_missing, 0) as rows_missing,
        case
            when counted.claim is null and subjects.run_count = 0 then 'harness run'
            when counted.claim is null and not subjects.is_declared
                then 'only the corpus and settings that a preset declares can show it'
            when counted.claim is null
                then 'the contract asks nothing of it in preset ' || subjects.preset
            else coalesce(counted.next_step, '')
        end as next_step
    from subjects
    cross join claims
    left join counted
        on
            subjects.subject = counted.subject
            and claims.claim = counted.claim
    left join drilled
        on
            subjects.subject = drilled.subject
            and claims.claim = drilled.claim
)

select * from judged
order by subject, review_task, claim_number
