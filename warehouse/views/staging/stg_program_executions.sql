-- grain: execution_id, row_number
-- reads: raw.program_executions

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- program
    program,
    label,
    -- process
    process_id,
    host,
    started_at,
    duration_ns,
    peak_memory_bytes,
    return_code
from raw.program_executions
