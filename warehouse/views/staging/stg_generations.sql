-- grain: execution_id, release_policy, prompt
-- reads: raw.generations

select
    -- identity
    execution_id,
    stage,
    row_number,
    -- which
    release_policy,
    prompt,
    -- completion
    expected,
    text,
    token_ids,
    stop_reason,
    new_tokens,
    -- judgement of the grammar
    is_expected,
    note
from raw.generations
