-- grain: name
-- reads: selected_executions, stg_baselines, stg_evaluations
-- review: held-out lies between the baseline and the entropy floor
-- about: the selected subject
with

heldout as (
    select
        'held-out' as name,
        1 as level_order,
        stg_evaluations.loss_sum_nats / stg_evaluations.valid_targets as nats_per_token,
        'released parameters, fp32' as rule
    from stg_evaluations
    inner join selected_executions
        on stg_evaluations.execution_id = selected_executions.execution_id
    where
        stg_evaluations.stage = 'evaluate_heldout'
        and stg_evaluations.split = 'heldout'
        and stg_evaluations.release_policy = 'fp32'
    qualify
        row_number() over (order by stg_evaluations.batch_documents desc) = 1
),

baselines as (
    select
        replace(stg_baselines.name, '_', ' ') as name,
        2 as level_order,
        stg_baselines.nats_per_token,
        stg_baselines.rule
    from stg_baselines
    inner join selected_executions
        on stg_baselines.execution_id = selected_executions.execution_id
    where
        stg_baselines.split = 'heldout'
        -- a floor is known only where the corpus has a grammar
        and stg_baselines.nats_per_token is not null
),

levels as (
    select * from heldout
    union all
    select * from baselines
)

select * from levels
order by level_order, nats_per_token desc
