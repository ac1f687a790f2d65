-- grain: execution_id, row_number
-- reads: perplexity_comparisons
-- review: what views refuse to compare is refused for the expected reason
select
    -- identity
    execution_id,
    stage,
    row_number,
    -- what
    '1.13' as claim,
    'incomparable_perplexity' as measure,
    name as case_name,
    -- what became of it
    expected_reason,
    reason as received_reason,
    if(
        reason is null,
        '',
        'no ratio of perplexities: ' || differs_in || ' differ from the release'
    ) as message
from perplexity_comparisons
where
    execution_id = other_execution_id
    and expected_reason is not null
order by execution_id, row_number
