-- grain: execution_id, row_number
-- reads: raw.refusals

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    claim,
    measure,
    case_name,
    -- what became of it
    expected_reason,
    received_reason,
    message
from raw.refusals
