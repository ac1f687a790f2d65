-- grain: execution_id, row_number
-- reads: raw.logit_errors

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    release_policy,
    document_id,
    position,
    -- error
    largest_error,
    mean_error,
    divergence_nats,
    loss_nats,
    -- effect
    is_top_changed,
    margin
from raw.logit_errors
