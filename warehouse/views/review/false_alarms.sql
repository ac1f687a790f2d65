-- grain: fault
-- reads: drills
-- review: empty; a variant stands here that is no fault and was accused all the same
-- about: the selected subject
select
    stage,
    fault_group,
    fault,
    claims,
    first_claim,
    first_measure,
    failure,
    summary
from drills
where outcome = 'false alarm'
order by stage_number nulls last, stage, fault
