-- grain: release_policy, prompt
-- reads: selected_executions, stg_generations
-- review: failures stand beside successes, each with its reason where known
-- about: the selected subject
with

generations as (
    select stg_generations.*
    from stg_generations
    inner join selected_executions
        on stg_generations.execution_id = selected_executions.execution_id
)

select * from generations
order by release_policy = 'fp32' desc, release_policy, prompt
