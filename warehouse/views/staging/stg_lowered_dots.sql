-- grain: execution_id, row_number
-- reads: raw.lowered_dots

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- where
    endpoint,
    release_policy,
    platform,
    place,
    -- what
    dot,
    is_dense,
    -- number formats
    operand_type,
    accumulator_type,
    precision,
    -- shapes
    left_shape,
    right_shape
from raw.lowered_dots
