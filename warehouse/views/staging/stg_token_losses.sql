-- grain: execution_id, release_policy, split, document_id, position
-- reads: raw.token_losses

select
    -- identity
    execution_id,
    stage,
    row_number,
    release_policy,
    split,
    document_id,
    position,
    -- target
    target_token,
    loss_nats,
    -- prediction
    predicted_token,
    is_correct
from raw.token_losses
