-- grain: execution_id, row_number
-- reads: raw.policies

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    policy,
    kind,
    reached,
    -- number formats
    weights,
    activations,
    accumulation,
    cache,
    lowered_operands,
    compiled_operands,
    -- scales
    scale_granularity,
    zero_point,
    clipping,
    calibration,
    -- bytes
    weight_bytes,
    cache_bytes,
    optimizer_bytes,
    artifact_bytes,
    -- quality
    heldout_nats_per_token,
    heldout_targets,
    largest_logit_error,
    logit_error_limit,
    changed_top_tokens,
    -- time
    decode_ns,
    decode_rows,
    device,
    -- why
    reason,
    detail
from raw.policies
