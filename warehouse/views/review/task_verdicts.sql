-- grain: review_task
-- reads: verdicts
-- review: a task is accepted when its last claim is
-- about: the selected subject
with

verdicts as (
    select * from verdicts
),

counted as (
    select
        review_task,
        count(*) as claims,
        count(*) filter (where starts_with(verdict, 'accept')) as accepted,
        count(*) filter (where verdict = 'accept (undrilled)') as undrilled,
        count(*) filter (where verdict = 'revise') as revised,
        count(*) filter (where verdict = 'not demonstrated') as open,
        arg_min(
            claim || ': ' || next_step, (verdict <> 'revise', claim_number)
        ) filter (where not starts_with(verdict, 'accept')) as next_step
    from verdicts
    group by review_task
),

judged as (
    select
        review_task,
        case
            when revised > 0 then 'revise'
            when accepted < claims then 'not demonstrated'
            when undrilled > 0 then 'accept (undrilled)'
            else 'accept'
        end as verdict,
        claims,
        accepted,
        undrilled,
        revised,
        open,
        coalesce(next_step, '') as next_step
    from counted
)

select * from judged
order by review_task
