-- grain: execution_id
-- reads: stg_updates, used_splits
-- review: 0 everywhere; an epoch trains on exactly the targets of the training split
with

updates as (
    select * from stg_updates
    where stage = 'train_model' and run_label = 'uninterrupted'
),

training_splits as (
    select * from used_splits
    where split = 'train'
),

epochs as (
    select
        execution_id,
        stage,
        epoch,
        count(*) as updates,
        sum(valid_targets) as valid_targets
    from updates
    group by execution_id, stage, epoch
),

-- the last epoch may be cut off: it is whole with as many updates as the one before
neighbours as (
    select
        *,
        lag(updates) over (partition by execution_id order by epoch) as updates_before,
        epoch = max(epoch) over (partition by execution_id) as is_last
    from epochs
),

compared as (
    select
        neighbours.execution_id,
        neighbours.stage,
        coalesce(neighbours.valid_targets <> training_splits.valid_targets, true)
            as is_apart
    from neighbours
    inner join training_splits
        on neighbours.execution_id = training_splits.execution_id
    where not neighbours.is_last or neighbours.updates = neighbours.updates_before
),

counts as (
    select
        execution_id,
        stage,
        '2.9' as claim,
        'recounted_epochs_of_other_targets' as measure,
        '' as case_name,
        count(*) filter (where is_apart) as value_count,
        cast(null as double) as value_real,
        'epochs' as unit,
        'of ' || count(*) || ' whole epochs' as detail
    from compared
    group by execution_id, stage
)

select * from counts
order by execution_id
