-- grain: execution_id, policy, part, array_name
-- reads: raw.policy_arrays

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    policy,
    part,
    array_name,
    -- storage
    dtype,
    shape,
    array_bytes
from raw.policy_arrays
