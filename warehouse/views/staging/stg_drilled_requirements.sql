-- grain: execution_id, row_number
-- reads: raw.drilled_requirements

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    fault,
    drilled_stage,
    requirement_id,
    claim,
    measure,
    relation,
    unit,
    limit_value,
    -- what the requirement read
    rows_met,
    rows_unmet,
    rows_missing,
    worst_case,
    worst_value,
    worst_margin,
    expected,
    measured,
    failure
from raw.drilled_requirements
