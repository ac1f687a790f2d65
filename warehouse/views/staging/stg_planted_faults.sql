-- grain: execution_id, row_number
-- reads: raw.planted_faults

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    fault,
    fault_group,
    summary,
    source,
    claim,
    replaces,
    is_benign
from raw.planted_faults
