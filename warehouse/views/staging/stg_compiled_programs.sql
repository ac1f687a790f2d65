-- grain: execution_id, platform, program
-- reads: raw.compiled_programs

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    platform,
    program,
    topology,
    -- for and by what
    device_kind,
    devices,
    compiler,
    label,
    -- what the program holds
    hlo_sha256,
    instructions,
    matrix_products,
    collectives,
    -- what a run would cost
    flops,
    bytes_accessed,
    argument_bytes,
    output_bytes,
    temporary_bytes,
    code_bytes,
    -- time
    duration_ns
from raw.compiled_programs
