-- grain: execution_id, measure, case_name
-- reads: stg_token_losses, stg_evaluations
-- review: 0 everywhere; the rows add up to the reported sums, bit by bit
with

token_losses as (
    select * from stg_token_losses
),

evaluations as (
    select * from stg_evaluations
),

gathered as (
    select
        execution_id,
        stage,
        release_policy,
        split,
        list(loss_nats order by row_number) as losses,
        count(*) as valid_targets,
        count(*) filter (where is_correct) as correct_targets
    from token_losses
    group by execution_id, stage, release_policy, split
),

-- one addition after another in float64, in the order of the rows: a plain sum() adds
-- in an order of its own and would differ in the last bits
recounted as (
    select
        *,
        -- sqlfluff does not know DuckDB's only form of a lambda yet
        list_reduce(losses, lambda total, loss: total + loss) -- noqa: PRS
            as loss_sum_nats
    from gathered
),

compared as (
    select
        recounted.execution_id,
        recounted.stage,
        evaluations.split || '/' || evaluations.release_policy || '/batch-'
        || evaluations.batch_documents as case_name,
        recounted.loss_sum_nats - evaluations.loss_sum_nats as sum_difference,
        recounted.valid_targets - evaluations.valid_targets as target_difference,
        recounted.correct_targets - evaluations.correct_targets as correct_difference,
        'from ' || recounted.valid_targets || ' rows of token_losses' as detail
    from recounted
    inner join evaluations
        on
            recounted.execution_id = evaluations.execution_id
            and recounted.release_policy = evaluations.release_policy
            and recounted.split = evaluations.split
),

differences as (
    select
        execution_id,
        stage,
        '2.9' as claim,
        'recounted_loss_sum_difference' as measure,
        case_name,
        cast(null as bigint) as value_count,
        sum_difference as value_real,
        'nats' as unit,
        detail
    from compared
    union all
    select
        execution_id,
        stage,
        '2.9' as claim,
        'recounted_valid_target_difference' as measure,
        case_name,
        target_difference as value_count,
        cast(null as double) as value_real,
        'targets' as unit,
        detail
    from compared
    union all
    select
        execution_id,
        stage,
        '2.9' as claim,
        'recounted_correct_target_difference' as measure,
        case_name,
        correct_difference as value_count,
        cast(null as double) as value_real,
        'targets' as unit,
        detail
    from compared
)

select * from differences
order by execution_id, measure, case_name
