-- grain: requirement_id, source, row_number, case_name
-- reads: subject_claim_rows, raw.selection
-- review: the rows of the selected subject; every one of them should be met
-- about: the selected subject
with

claim_rows as (
    select * from subject_claim_rows
),

selection as (
    select * from raw.selection
),

selected as (
    select claim_rows.*
    from claim_rows
    inner join selection
        on claim_rows.subject = selection.subject
),

shown as (
    select * exclude (subject) from selected
)

select * from shown
order by review_task, claim_number, requirement_id, source, row_number
