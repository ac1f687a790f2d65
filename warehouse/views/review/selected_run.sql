-- grain: run_id
-- reads: runs, selection
-- review: the one run that the selected subject was asked for by
-- about: the selected subject
with

chosen as (
    select runs.*
    from runs
    inner join selection
        on runs.run_id = selection.run_id
)

select * from chosen
