-- grain: execution_id, release_policy, split, update_number, batch_documents
-- reads: raw.evaluations

select
    -- identity
    execution_id,
    stage,
    row_number,
    release_policy,
    split,
    update as update_number,
    batch_documents,
    -- sums
    documents,
    loss_sum_nats,
    valid_targets,
    correct_targets
from raw.evaluations
