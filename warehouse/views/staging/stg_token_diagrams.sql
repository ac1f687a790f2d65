-- grain: execution_id, document_id, position
-- reads: raw.token_diagrams

select
    -- identity
    execution_id,
    stage,
    row_number,
    document_id,
    position,
    -- what stands here
    byte_value,
    token_id,
    token_kind,
    -- what is read and predicted here
    input_token,
    target_token,
    is_valid_target
from raw.token_diagrams
