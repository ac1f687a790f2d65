-- grain: claim
-- reads: verdicts
-- review: each claim that is not accepted says what would change its verdict
with

verdicts as (
    select * from verdicts
),

steps as (
    select
        review_task,
        claim_number,
        claim,
        verdict,
        next_step
    from verdicts
    where next_step <> ''
)

select * from steps
order by verdict <> 'revise', review_task, claim_number
