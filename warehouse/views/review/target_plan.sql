-- grain: accelerator, step
-- reads: selected_executions, stg_target_steps
-- review: each command can be pasted on the target; each names the row it must give
-- about: the selected subject
with

steps as (
    select stg_target_steps.*
    from stg_target_steps
    inner join selected_executions
        on stg_target_steps.execution_id = selected_executions.execution_id
)

select * from steps
order by accelerator, step
