-- grain: fault
-- reads: drills
-- review: empty; a fault stands here that its claim did not turn on
-- about: the selected subject
select
    stage,
    fault_group,
    fault,
    claim,
    outcome,
    claims,
    failure,
    summary
from drills
where outcome in ('survived', 'stopped')
order by stage_number nulls last, stage, fault
