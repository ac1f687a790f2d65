-- grain: execution_id, run_label, update_number, kind, leaf
-- reads: raw.update_digests

select
    -- identity
    execution_id,
    stage,
    row_number,
    run_label,
    update as update_number,
    kind,
    leaf,
    -- value
    dtype,
    shape,
    sha256
from raw.update_digests
