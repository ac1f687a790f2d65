-- grain: execution_id, row_number
-- reads: raw.stopped_trainings

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which training
    case_name,
    run_label,
    process_id,
    -- how it stopped
    stopped_at_update,
    stop_reason,
    message,
    -- what is left of it
    traced_updates,
    last_good_update,
    committed_sha256,
    kept_sha256
from raw.stopped_trainings
