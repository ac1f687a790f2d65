-- grain: execution_id, gang, given_index
-- reads: raw.controllers

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    gang,
    given_index,
    given_count,
    -- what was demanded, and what was answered
    process_index,
    process_count,
    given_nonce,
    nonce,
    demanded_code_sha256,
    code_sha256,
    -- its process and devices
    process_id,
    host,
    platform,
    device_kind,
    local_devices,
    local_device_count,
    global_device_count,
    versions,
    environment
from raw.controllers
