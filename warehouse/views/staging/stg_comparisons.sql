-- grain: execution_id, row_number
-- reads: raw.comparisons

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    claim,
    measure,
    case_name,
    -- the two sides
    expected,
    measured,
    expected_from,
    first_difference
from raw.comparisons
