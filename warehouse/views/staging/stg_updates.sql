-- grain: execution_id, run_label, update_number
-- reads: raw.updates

select
    -- identity
    execution_id,
    stage,
    row_number,
    run_label,
    update as update_number,
    -- batch
    epoch,
    cursor as cursor_documents,
    valid_targets,
    cumulative_valid_targets,
    -- measured
    loss_nats,
    learning_rate,
    duration_ns
from raw.updates
