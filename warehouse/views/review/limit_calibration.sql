-- grain: requirement_id
-- reads: drill_rows, drills, raw.contract
-- review: the limit lies between what the correct system shows and the smallest fault
-- about: the selected subject
with

drilled as (
    select
        drill_rows.*,
        drills.is_benign
    from drill_rows
    left join drills
        on drill_rows.fault = drills.fault
    where
        drill_rows.requirement_id > 0
        and drill_rows.relation <> 'reported'
),

contract as (
    select * from raw.contract
),

correct as (
    select
        requirement_id,
        max(worst_value) as noise,
        max(worst_margin) as noise_margin
    from drilled
    where
        fault = ''
        and rows_met > 0
        -- what the smaller system breaks by itself says nothing about a limit
        and rows_unmet = 0
    group by requirement_id
),

-- a fault whose number cannot be told from the limit by distance killed all the same
killed as (
    select
        requirement_id,
        count(distinct fault) as faults_killed,
        arg_max(fault, worst_margin) as nearest_fault,
        arg_max(worst_value, worst_margin) as smallest_effect,
        max(worst_margin) as nearest_margin,
        min(fault) as any_fault
    from drilled
    where
        is_turned
        and not is_benign
    group by requirement_id
),

calibrated as (
    select
        -- which limit
        contract.requirement_id,
        contract.claim,
        contract.stage,
        contract.measure,
        contract.relation,
        contract.unit,
        contract.limit_value,
        -- the correct system
        correct.noise,
        correct.noise_margin,
        -- the faults
        coalesce(killed.faults_killed, 0) as faults_killed,
        coalesce(killed.nearest_fault, killed.any_fault, '') as nearest_fault,
        killed.smallest_effect,
        0 - killed.nearest_margin as effect_margin
    from contract
    inner join correct
        on contract.requirement_id = correct.requirement_id
    left join killed
        on contract.requirement_id = killed.requirement_id
    where contract.relation <> 'reported'
)

select * from calibrated
order by requirement_id
