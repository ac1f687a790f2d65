-- grain: control
-- reads: selected_executions, stg_negative_controls
-- review: every fault but none is found, although its first losses may look right
-- about: the selected subject
with

controls as (
    select
        stg_negative_controls.*,
        row_number() over (
            partition by
                stg_negative_controls.execution_id, stg_negative_controls.control
            order by stg_negative_controls.update_number
        ) as place
    from stg_negative_controls
    inner join selected_executions
        on stg_negative_controls.execution_id = selected_executions.execution_id
),

summary as (
    select
        control,
        -- what gave it away
        count(*) as updates_compared,
        count(*) filter (where differing_leaves > 0) as updates_detected,
        min(update_number) filter (where differing_leaves > 0) as first_update,
        arg_min(first_kind, update_number) filter (where differing_leaves > 0)
            as first_kind,
        arg_min(first_leaf, update_number) filter (where differing_leaves > 0)
            as first_leaf,
        coalesce(
            arg_min(first_difference, update_number)
            filter (where differing_leaves > 0),
            ''
        ) as first_difference,
        -- how plausible the losses looked
        max(loss_nats - uninterrupted_loss_nats) filter (where place = 1)
            as first_loss_change_nats,
        max(loss_nats - uninterrupted_loss_nats) filter (where place = 2)
            as second_loss_change_nats,
        max(uninterrupted_loss_nats) filter (where place = 1) as first_loss_nats,
        max(loss_nats) filter (where place = 1) as first_planted_loss_nats
    from controls
    group by control
),

described as (
    select
        *,
        coalesce(
            'update ' || first_update || ', '
            || concat_ws(' ', first_kind, nullif(first_leaf, '')),
            'nowhere'
        ) as found_at
    from summary
)

select * from described
order by control
