-- grain: execution_id, source, row_number
-- reads: selected_executions, stg_refusals, derived_refusals
-- review: received equals expected in every row; each change is alone in its case
with

refused as (
    select
        'refusals' as source,
        *
    from stg_refusals
    union all by name
    select
        'derived_refusals' as source,
        *
    from derived_refusals
),

selected as (
    select
        -- identity
        refused.execution_id,
        refused.source,
        refused.row_number,
        -- what
        refused.stage,
        refused.claim,
        refused.measure,
        refused.case_name,
        -- what became of it
        refused.expected_reason as expected,
        refused.received_reason as received,
        refused.message
    from refused
    inner join selected_executions
        on refused.execution_id = selected_executions.execution_id
)

select * from selected
order by claim, measure, case_name, execution_id, source, row_number
