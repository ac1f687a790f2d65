-- grain: execution_id, accelerator
-- reads: raw.target_accelerators

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what was asked for
    accelerator,
    platform,
    hosts,
    devices,
    kinds,
    chip
from raw.target_accelerators
