-- grain: execution_id, document_id
-- reads: raw.documents

select
    -- identity
    execution_id,
    stage,
    row_number,
    document_id,
    -- origin
    split,
    source_group,
    license,
    source,
    sha256,
    -- size
    document_bytes,
    valid_targets
from raw.documents
