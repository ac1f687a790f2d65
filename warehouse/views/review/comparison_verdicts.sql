-- grain: claim
-- reads: subject_verdicts, subject_claim_rows, applicable_requirements
-- reads: comparison_stages
-- review: no verdict got worse; one that rests on reused executions says nothing
-- kept: all
with

stages as (
    select * from comparison_stages
),

verdicts as (
    select
        *,
        case
            when starts_with(verdict, 'accept') then 0
            when verdict = 'not demonstrated' then 1
            else 2
        end as verdict_rank
    from subject_verdicts
    where subject in ('before', 'after')
),

requirements as (
    select * from applicable_requirements
    where subject in ('before', 'after')
),

refuted as (
    select * from subject_claim_rows
    where
        subject = 'after'
        and status in ('unmet', 'invalid')
),

recomputed as (
    select
        requirements.claim,
        count(distinct stages.stage) filter (where stages.result = 'recomputed')
            as recomputed_stages
    from requirements
    inner join stages
        on requirements.stage = stages.stage
    group by requirements.claim
),

-- a claim that only its times fail: they are shown, and not judged
timed as (
    select
        refuted.claim,
        bool_and(
            refuted.unit = 'nanoseconds'
            or (stages.measures_time and refuted.value_real is not null)
        ) as is_by_times
    from refuted
    inner join stages
        on refuted.stage = stages.stage
    group by refuted.claim
),

paired as (
    select
        later.review_task,
        later.claim_number,
        later.claim,
        before.verdict as before_verdict,
        later.verdict as after_verdict,
        case
            when later.verdict_rank > before.verdict_rank and timed.is_by_times
                then 'worse timing'
            when later.verdict_rank > before.verdict_rank then 'worse'
            when later.verdict_rank < before.verdict_rank then 'better'
            -- nobody showed it, before or after
            when later.verdict_rank = 1 then 'no value'
            when coalesce(recomputed.recomputed_stages, 0) = 0 then 'not recomputed'
            else 'equal'
        end as result,
        later.statement,
        later.next_step
    from verdicts as later
    inner join verdicts as before
        on later.claim = before.claim
    left join recomputed
        on later.claim = recomputed.claim
    left join timed
        on later.claim = timed.claim
    where
        later.subject = 'after'
        and before.subject = 'before'
)

select * from paired
order by review_task, claim_number
