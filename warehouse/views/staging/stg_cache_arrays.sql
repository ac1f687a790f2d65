-- grain: execution_id, row_number
-- reads: raw.cache_arrays

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    cache_policy,
    array_name,
    -- layout
    dtype,
    shape,
    array_bytes
from raw.cache_arrays
