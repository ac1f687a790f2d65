-- grain: execution_id, row_number, other_execution_id, other_row_number
-- reads: stg_perplexities, selected_executions
-- review: no ratio without the same tokenizer, vocabulary, mask policy and text
with

perplexities as (
    select
        *,
        loss_sum_nats / nullif(counted_targets, 0) as nats_per_token
    from stg_perplexities
),

releases as (
    select * from perplexities
    where name = 'release'
),

selected as (
    select * from selected_executions
),

-- each with its own release, and those of other executions with the selected one
pairs as (
    select
        perplexities.*,
        releases.execution_id as other_execution_id,
        releases.row_number as other_row_number,
        releases.name as other_name,
        releases.nats_per_token as other_nats_per_token,
        -- what differs, in the order in which it is named
        if(perplexities.tokenizer <> releases.tokenizer, 'tokenizer', null)
            as tokenizer_apart,
        if(
            perplexities.vocabulary_tokens <> releases.vocabulary_tokens,
            'vocabulary', null
        ) as vocabulary_apart,
        if(perplexities.mask_policy <> releases.mask_policy, 'mask_policy', null)
            as mask_policy_apart,
        if(perplexities.text_sha256 <> releases.text_sha256, 'text', null)
            as text_apart
    from perplexities
    inner join releases
        on
            perplexities.split = releases.split
            and (
                (
                    perplexities.execution_id = releases.execution_id
                    and perplexities.name <> 'release'
                )
                or (
                    perplexities.execution_id <> releases.execution_id
                    and releases.execution_id in (
                        select selected.execution_id from selected
                    )
                )
            )
),

compared as (
    select
        *,
        concat_ws(
            ', ', tokenizer_apart, vocabulary_apart, mask_policy_apart, text_apart
        ) as differs_in,
        coalesce(
            tokenizer_apart, vocabulary_apart, mask_policy_apart, text_apart
        ) || '_changed' as reason
    from pairs
)

select
    -- identity
    execution_id,
    stage,
    row_number,
    other_execution_id,
    other_row_number,
    -- which two
    name,
    other_name,
    split,
    -- the ratio of the perplexities, or why there is none
    if(reason is null, exp(nats_per_token - other_nats_per_token), null)
        as perplexity_ratio,
    reason,
    differs_in,
    expected_reason
from compared
order by execution_id, row_number, other_execution_id, other_row_number
