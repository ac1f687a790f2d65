-- grain: execution_id, claim, measure, case_name
-- reads: stg_target_accelerators, stg_target_answers, stg_target_signs
-- reads: stg_target_devices
-- review: what answered is all of the accelerator that was asked for, and nothing else
with

sold as (
    select * from stg_target_accelerators
),

answers as (
    select * from stg_target_answers
    where stage = 'qualify_target' and start_error = ''
),

signs as (
    select * from stg_target_signs
    where sign = 'chips_on_bus'
),

listed as (
    select * from stg_target_devices
),

-- each answer beside what was asked for
asked as (
    select
        answers.*,
        coalesce(sold.hosts, 0) as sold_hosts,
        coalesce(sold.devices, 0) as sold_devices,
        coalesce(sold.kinds, '') as kinds,
        coalesce(sold.chip, '') as chip
    from answers
    left join sold
        on answers.execution_id = sold.execution_id
),

-- every device that a controller lists, beside what it should be
devices as (
    select
        asked.execution_id,
        asked.stage,
        asked.case_name,
        asked.controller,
        asked.sold_devices,
        listed.device,
        coalesce(listed.is_local and listed.process = asked.controller, false)
            as is_own,
        listed.device is not null
        and asked.kinds <> ''
        and not list_contains(
            string_split(asked.kinds, ', '), listed.kind
        ) as is_another
    from asked
    left join listed
        on
            asked.execution_id = listed.execution_id
            and asked.case_name = listed.case_name
            and asked.controller = listed.controller
            and asked.platform = listed.platform
),

-- a gang at a time: what two controllers both call their own is a device short
gangs as (
    select
        execution_id,
        stage,
        case_name,
        max(sold_devices) as sold_devices,
        count(distinct device) filter (where is_own) as own,
        count(*) filter (where is_own) as told,
        count(distinct device) filter (where is_another) as others
    from devices
    group by execution_id, stage, case_name
),

-- chips on the bus of each host, by the generation that their ids stand for
chips as (
    select
        asked.execution_id,
        asked.stage,
        count(*) filter (
            where asked.chip <> ''
            and list_distinct(string_split(coalesce(signs.found, ''), ', '))
            <> [asked.chip]
        ) as others
    from asked
    left join signs
        on
            asked.execution_id = signs.execution_id
            and asked.case_name = signs.case_name
            and asked.controller = signs.controller
    group by asked.execution_id, asked.stage
),

machines as (
    select
        execution_id,
        stage,
        case_name,
        max(sold_hosts) as sold_hosts,
        count(distinct host) as hosts
    from asked
    group by execution_id, stage, case_name
),

counted as (
    select
        execution_id,
        stage,
        '5.1' as claim,
        'recounted_devices_apart' as measure,
        max(abs(greatest(sold_devices, 1) - own) + told - own) as value_count,
        'devices' as unit
    from gangs
    group by execution_id, stage
    union all by name
    select
        execution_id,
        stage,
        '5.1' as claim,
        'recounted_devices_of_another_kind' as measure,
        max(others) as value_count,
        'devices' as unit
    from gangs
    group by execution_id, stage
    union all by name
    select
        execution_id,
        stage,
        '5.1' as claim,
        'recounted_hosts_of_another_chip' as measure,
        others as value_count,
        'hosts' as unit
    from chips
    union all by name
    select
        execution_id,
        stage,
        '5.2' as claim,
        'recounted_machines_apart' as measure,
        max(abs(greatest(sold_hosts, 1) - hosts)) as value_count,
        'hosts' as unit
    from machines
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
        'of the records of the target, beside what was asked for' as detail
    from counted
)

select * from described
order by execution_id, claim, measure, case_name
