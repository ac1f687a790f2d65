-- grain: execution_id, row_number
-- reads: raw.checkpoint_fields

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    field,
    recorded_value
from raw.checkpoint_fields
