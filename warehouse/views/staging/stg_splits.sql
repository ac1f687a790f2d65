-- grain: execution_id, split
-- reads: raw.splits

select
    -- identity
    execution_id,
    stage,
    row_number,
    split,
    split_sha256,
    -- size
    documents,
    document_bytes,
    valid_targets,
    padded_targets
from raw.splits
