-- grain: execution_id, row_number
-- reads: raw.initializations

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    initialization_seed,
    is_released,
    -- how far
    updates,
    asked_updates,
    -- what it reached
    validation_nats_per_token,
    heldout_nats_per_token,
    heldout_correct_targets,
    heldout_valid_targets,
    parameters_sha256,
    -- or why not
    failure_reason
from raw.initializations
