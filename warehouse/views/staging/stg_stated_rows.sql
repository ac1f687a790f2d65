-- grain: execution_id, row_number
-- reads: raw.stated_rows

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    table_name,
    row_name,
    sha256
from raw.stated_rows
