-- grain: execution_id, document_id, block, head, query_position, key_position
-- reads: raw.attention_weights

select
    -- identity
    execution_id,
    stage,
    row_number,
    document_id,
    block,
    head,
    query as query_position,
    key as key_position,
    -- weight
    weight,
    reference_weight
from raw.attention_weights
