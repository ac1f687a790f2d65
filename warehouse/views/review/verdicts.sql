-- grain: claim
-- reads: subject_verdicts, raw.selection
-- review: every claim of the contract is accepted for the selected subject
-- about: the selected subject
with

verdicts as (
    select * from subject_verdicts
),

selection as (
    select * from raw.selection
),

selected as (
    select verdicts.*
    from verdicts
    inner join selection
        on verdicts.subject = selection.subject
),

shown as (
    select * exclude (subject) from selected
)

select * from shown
order by review_task, claim_number
