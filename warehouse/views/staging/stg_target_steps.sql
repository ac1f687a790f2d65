-- grain: execution_id, step
-- reads: raw.target_steps

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    accelerator,
    step,
    claim,
    -- what to run and what to see
    command,
    expected_table,
    expected_row
from raw.target_steps
