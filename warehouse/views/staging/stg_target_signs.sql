-- grain: execution_id, case_name, controller, sign
-- reads: raw.target_signs

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    case_name,
    controller,
    platform,
    sign,
    -- what was found
    is_there,
    wanted,
    found
from raw.target_signs
