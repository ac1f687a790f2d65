-- grain: execution_id, row_number
-- reads: raw.perplexities

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    name,
    split,
    -- what it is a mean over
    text_sha256,
    tokenizer,
    vocabulary_tokens,
    mask_policy,
    -- value
    loss_sum_nats,
    counted_targets,
    -- what a comparison must say
    expected_reason
from raw.perplexities
