-- grain: execution_id, platform, program
-- reads: raw.target_programs

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    platform,
    program,
    -- its bytes
    artifact,
    sha256,
    program_bytes,
    -- what they say
    platforms,
    calling_convention_version,
    devices,
    stablehlo_sha256,
    matrix_products
from raw.target_programs
