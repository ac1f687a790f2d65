-- grain: execution_id, claim, measure, case_name
-- reads: stg_target_answers, stg_target_signs, stg_target_devices
-- review: a target has answered with every sign and at least one device of its own
with

answers as (
    select * from stg_target_answers
    where stage = 'qualify_target' and start_error = ''
),

signs as (
    select * from stg_target_signs
    where is_there
),

devices as (
    select * from stg_target_devices
    where is_local
),

counted as (
    select
        answers.execution_id,
        answers.stage,
        'recounted_signs' as measure,
        count(signs.sign) as value_count,
        'signs' as unit
    from answers
    left join signs
        on
            answers.execution_id = signs.execution_id
            and answers.controller = signs.controller
            and answers.platform = signs.platform
    group by answers.execution_id, answers.stage
    union all by name
    select
        answers.execution_id,
        answers.stage,
        'recounted_devices' as measure,
        count(devices.device) as value_count,
        'devices' as unit
    from answers
    left join devices
        on
            answers.execution_id = devices.execution_id
            and answers.controller = devices.controller
            and answers.platform = devices.platform
    group by answers.execution_id, answers.stage
),

described as (
    select
        -- identity
        execution_id,
        stage,
        '5.1' as claim,
        measure,
        '' as case_name,
        -- value
        value_count,
        cast(null as double) as value_real,
        unit,
        'of the records of the target' as detail
    from counted
)

select * from described
order by execution_id, claim, measure, case_name
