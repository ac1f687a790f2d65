-- grain: execution_id, case_name, controller, device
-- reads: raw.target_devices

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    case_name,
    controller,
    device,
    -- what it is
    platform,
    kind,
    process,
    coordinates,
    is_local
from raw.target_devices
