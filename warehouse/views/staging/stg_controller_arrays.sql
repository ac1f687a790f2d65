-- grain: execution_id, gang, label, process_index, array_name
-- reads: raw.controller_arrays

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    gang,
    label,
    program,
    process_index,
    array_name,
    -- its parts on devices
    shape,
    shard_shape,
    devices,
    is_on_all,
    sharding
from raw.controller_arrays
