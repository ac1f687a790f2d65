-- grain: execution_id, initialization_seed
-- reads: selected_executions, stg_initializations
-- review: every seed stands here, failed ones with their reason; the spread is small
-- about: the selected subject
with

initializations as (
    select stg_initializations.*
    from stg_initializations
    inner join selected_executions
        on stg_initializations.execution_id = selected_executions.execution_id
),

compared as (
    select
        * exclude (row_number),
        heldout_correct_targets / nullif(heldout_valid_targets, 0)
            as heldout_token_accuracy,
        heldout_nats_per_token
        - min(heldout_nats_per_token) over (partition by execution_id)
            as above_best_nats
    from initializations
)

select * from compared
order by is_released desc, initialization_seed
