-- grain: execution_id, claim, measure, case_name
-- reads: stg_target_answers, stg_target_signs, stg_target_devices
-- review: every controller of a target has answered, each with all signs and with a
-- review: device of its own
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

-- each controller of each gang by itself: what one lacks no other makes good
signs_of_each as (
    select
        answers.execution_id,
        answers.stage,
        answers.case_name,
        answers.controller,
        count(distinct signs.sign) as value_count
    from answers
    left join signs
        on
            answers.execution_id = signs.execution_id
            and answers.case_name = signs.case_name
            and answers.controller = signs.controller
            and answers.platform = signs.platform
    group by all
),

devices_of_each as (
    select
        answers.execution_id,
        answers.stage,
        answers.case_name,
        answers.controller,
        count(distinct devices.device) as value_count
    from answers
    left join devices
        on
            answers.execution_id = devices.execution_id
            and answers.case_name = devices.case_name
            and answers.controller = devices.controller
            and answers.platform = devices.platform
    group by all
),

answered as (
    select
        execution_id,
        stage,
        case_name,
        max(hosts) as hosts,
        least(
            count(distinct controller),
            count(distinct nonce),
            count(distinct host || ' ' || process_id)
        ) as controllers
    from answers
    group by execution_id, stage, case_name
),

counted as (
    select
        execution_id,
        stage,
        'recounted_signs' as measure,
        '5.1' as claim,
        min(value_count) as value_count,
        'signs' as unit
    from signs_of_each
    group by execution_id, stage
    union all by name
    select
        execution_id,
        stage,
        'recounted_devices' as measure,
        '5.1' as claim,
        min(value_count) as value_count,
        'devices' as unit
    from devices_of_each
    group by execution_id, stage
    union all by name
    select
        execution_id,
        stage,
        'recounted_controllers_missing' as measure,
        '5.2' as claim,
        -- hosts that nobody counted are none that answered
        max(greatest(hosts, 1) - controllers) as value_count,
        'controllers' as unit
    from answered
    group by execution_id, stage
),

described as (
    select
        -- identity
        execution_id,
        stage,
        claim,
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
