-- grain: execution_id, measure
-- reads: stg_updates, stg_evaluations, raw.key_components
-- review: 0 everywhere; validation was evaluated when the rule asks for it
with

updates as (
    select * from stg_updates
    where stage = 'train_model' and run_label = 'uninterrupted'
),

evaluated as (
    select distinct
        execution_id,
        update_number
    from stg_evaluations
    where stage = 'train_model' and split = 'validation'
),

settings as (
    select
        execution_id,
        cast(value as bigint) as every_updates
    from raw.key_components
    where component = 'config:train.evaluate_every_updates'
),

rules as (
    select
        updates.execution_id,
        updates.stage,
        max(updates.update_number) as last_update,
        max(settings.every_updates) as every_updates
    from updates
    inner join settings
        on updates.execution_id = settings.execution_id
    group by updates.execution_id, updates.stage
),

asked as (
    select
        execution_id,
        stage,
        unnest(list_distinct(list_append(
            generate_series(0, last_update, every_updates), last_update
        ))) as update_number
    from rules
),

epochs as (
    select
        execution_id,
        stage,
        epoch,
        min(update_number) as first_update,
        max(update_number) as last_update
    from updates
    group by execution_id, stage, epoch
),

counts as (
    select
        asked.execution_id,
        asked.stage,
        'recounted_validations_missing' as measure,
        count(*) filter (where evaluated.update_number is null) as value_count,
        'evaluations' as unit,
        'of ' || count(*) || ' that the rule asks for' as detail
    from asked
    left join evaluated
        on
            asked.execution_id = evaluated.execution_id
            and asked.update_number = evaluated.update_number
    group by asked.execution_id, asked.stage
    union all
    select
        epochs.execution_id,
        epochs.stage,
        'recounted_epochs_without_validation' as measure,
        count(*) filter (where not exists (
            select 1
            from evaluated
            where
                evaluated.execution_id = epochs.execution_id
                and evaluated.update_number
                between epochs.first_update and epochs.last_update
        )) as value_count,
        'epochs' as unit,
        'of ' || count(*) || ' epochs' as detail
    from epochs
    group by epochs.execution_id, epochs.stage
),

shaped as (
    select
        execution_id,
        stage,
        '2.9' as claim,
        measure,
        '' as case_name,
        value_count,
        cast(null as double) as value_real,
        unit,
        detail
    from counts
)

select * from shaped
order by execution_id, measure
