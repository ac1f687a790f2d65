-- grain: execution_id, row_number
-- reads: raw.timings

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    endpoint,
    release_policy,
    -- sample
    process,
    process_id,
    sample,
    phase,
    -- duration
    duration_ns,
    timer
from raw.timings
