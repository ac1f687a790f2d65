-- grain: execution_id, gang, label, process_index, update
-- reads: raw.controller_updates

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
    process_count,
    nonce,
    update,
    -- the objective
    loss_sum_nats,
    valid_targets,
    -- what the controller holds
    parameters_sha256,
    state_sha256,
    -- what it computed
    documents,
    targets_sha256,
    global_documents,
    device_documents,
    duration_ns
from raw.controller_updates
