-- grain: execution_id, name
-- reads: raw.release_settings

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- setting
    name,
    value
from raw.release_settings
