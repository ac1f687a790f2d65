-- grain: measure
-- reads: selected_executions, stg_comparisons
-- review: compared equals identical in every row
-- about: the selected subject
with

comparisons as (
    select
        stg_comparisons.measure,
        stg_comparisons.case_name,
        stg_comparisons.expected = stg_comparisons.measured as is_identical,
        stg_comparisons.case_name
        || ': ' || stg_comparisons.first_difference as difference
    from stg_comparisons
    inner join selected_executions
        on stg_comparisons.execution_id = selected_executions.execution_id
    where
        stg_comparisons.claim in ('2.1', '2.2', '2.3')
        -- the process that restored has to be another one
        and stg_comparisons.measure <> 'restoring_process'
),

summary as (
    select
        measure,
        count(*) as compared,
        count(*) filter (where is_identical) as identical,
        coalesce(min(difference) filter (where not is_identical), '')
            as first_difference
    from comparisons
    group by measure
)

select * from summary
order by measure
