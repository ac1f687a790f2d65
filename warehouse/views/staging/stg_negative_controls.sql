-- grain: execution_id, row_number
-- reads: raw.negative_controls

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    control,
    update as update_number,
    -- the first difference
    first_kind,
    first_leaf,
    first_difference,
    differing_leaves,
    -- how plausible it looked
    loss_nats,
    uninterrupted_loss_nats
from raw.negative_controls
