-- grain: execution_id, name, split
-- reads: raw.baselines

select
    -- identity
    execution_id,
    stage,
    row_number,
    name,
    split,
    -- level
    nats_per_token,
    rule
from raw.baselines
