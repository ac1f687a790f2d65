-- grain: execution_id, row_number
-- reads: raw.target_timings

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what was timed
    work,
    release_policy,
    sample,
    process_id,
    -- time
    duration_ns,
    timer
from raw.target_timings
