-- grain: execution_id, case_name, controller
-- reads: raw.target_answers

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    case_name,
    platform,
    accelerator,
    controller,
    controllers,
    hosts,
    -- who
    host,
    process_id,
    -- the launcher's challenge and the answer
    nonce,
    code_sha256_demanded,
    code_sha256,
    -- what it runs on
    runtime,
    matmul_precision,
    versions,
    environment,
    start_error
from raw.target_answers
