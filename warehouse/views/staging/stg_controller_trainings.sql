-- grain: execution_id, gang, label, process_index
-- reads: raw.controller_trainings

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    gang,
    label,
    program,
    process_index,
    -- what it trained with
    normalisation,
    tokenizer,
    split_sha256,
    tokens_sha256
from raw.controller_trainings
