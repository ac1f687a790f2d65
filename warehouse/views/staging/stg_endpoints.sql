-- grain: execution_id, endpoint, release_policy
-- reads: raw.endpoints

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    endpoint,
    release_policy,
    -- artifact
    artifact,
    sha256,
    artifact_bytes,
    platforms,
    calling_convention_version,
    stablehlo_sha256,
    -- program
    inputs,
    outputs,
    matrix_products,
    float32_operations
from raw.endpoints
