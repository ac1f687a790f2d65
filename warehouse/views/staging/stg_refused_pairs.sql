-- grain: execution_id, row_number
-- reads: raw.refused_pairs

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    claim,
    measure,
    first_change,
    second_change,
    -- what became of it
    expected_reason,
    received_reason,
    expected_fields,
    received_fields,
    -- what it touched
    sha256_before,
    sha256_after
from raw.refused_pairs
