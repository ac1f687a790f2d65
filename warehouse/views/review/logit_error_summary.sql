-- grain: release_policy
-- reads: selected_executions, stg_logit_errors, stg_policies
-- review: a changed top token had a small margin in FP32 (widest_changed_margin)
-- about: the selected subject
with

-- experiments and formats stand in the table of policies
others as (
    select distinct
        execution_id,
        policy
    from stg_policies
    where kind <> 'release' or policy = 'fp32'
),

errors as (
    select stg_logit_errors.*
    from stg_logit_errors
    inner join selected_executions
        on stg_logit_errors.execution_id = selected_executions.execution_id
    where
        (stg_logit_errors.execution_id, stg_logit_errors.release_policy)
        not in (select (others.execution_id, others.policy) from others)
),

summary as (
    select
        release_policy,
        count(*) as positions,
        max(largest_error) as largest_error,
        avg(mean_error) as mean_error,
        avg(divergence_nats) as mean_divergence_nats,
        count(*) filter (where is_top_changed) as changed_top_tokens,
        max(margin) filter (where is_top_changed) as widest_changed_margin
    from errors
    group by release_policy
)

select * from summary
order by largest_error, release_policy
