-- grain: execution_id, row_number
-- reads: raw.trace_regions

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    region,
    occurrence,
    -- duration
    host_ns,
    ready_ns,
    operations,
    -- code
    code_file,
    code_line
from raw.trace_regions
