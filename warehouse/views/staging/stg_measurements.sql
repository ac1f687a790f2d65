-- grain: execution_id, row_number
-- reads: raw.measurements

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    claim,
    measure,
    case_name,
    -- value
    value_count,
    value_real,
    unit,
    reason,
    detail
from raw.measurements
