-- grain: series, cumulative_valid_targets
-- reads: selected_executions, stg_evaluations, stg_updates
-- review: both series fall from the baseline towards the floor; validation stays near
-- about: the selected subject
with

updates as (
    select stg_updates.*
    from stg_updates
    inner join selected_executions
        on stg_updates.execution_id = selected_executions.execution_id
    where
        stg_updates.stage = 'train_model'
        and stg_updates.run_label = 'uninterrupted'
),

validation as (
    select
        stg_evaluations.update_number,
        stg_evaluations.loss_sum_nats,
        stg_evaluations.valid_targets
    from stg_evaluations
    inner join selected_executions
        on stg_evaluations.execution_id = selected_executions.execution_id
    where
        stg_evaluations.stage = 'train_model'
        and stg_evaluations.split = 'validation'
),

training_points as (
    select
        'training' as series,
        update_number,
        cumulative_valid_targets,
        loss_nats as nats_per_token,
        -- weighted by targets, so the line is a loss over tokens too
        sum(loss_nats * valid_targets) over lately
        / sum(valid_targets) over lately as smoothed_nats_per_token
    from updates
    window lately as (
        order by update_number rows between 5 preceding and current row
    )
),

validation_points as (
    select
        'validation' as series,
        validation.update_number,
        -- an evaluation before the first update has seen no target
        coalesce(updates.cumulative_valid_targets, 0) as cumulative_valid_targets,
        validation.loss_sum_nats / validation.valid_targets as nats_per_token,
        null as smoothed_nats_per_token
    from validation
    left join updates
        on validation.update_number = updates.update_number
),

points as (
    select * from training_points
    union all
    select * from validation_points
)

select * from points
order by series, cumulative_valid_targets
