-- grain: execution_id, row_number
-- reads: perplexity_comparisons, stg_perplexities, stg_stated_rows
-- review: what a view refuses is named exactly, and is as its program wrote it
with

refused as (
    select * from perplexity_comparisons
    where
        execution_id = other_execution_id
        and expected_reason is not null
),

perplexities as (
    select * from stg_perplexities
),

-- read after the comparison, from the same table
compared as (
    select
        refused.execution_id,
        refused.stage,
        refused.name,
        refused.differs_in,
        sha256(
            concat_ws(
                chr(10),
                perplexities.split,
                perplexities.text_sha256,
                perplexities.tokenizer,
                perplexities.vocabulary_tokens,
                perplexities.mask_policy,
                -- 17 digits name a float64 exactly
                printf('%.17g', perplexities.loss_sum_nats),
                perplexities.counted_targets
            )
        ) as sha256_after
    from refused
    inner join perplexities
        on
            refused.execution_id = perplexities.execution_id
            and refused.row_number = perplexities.row_number
),

stated as (
    select * from stg_stated_rows
    where table_name = 'perplexities'
),

sides as (
    select
        execution_id,
        stage,
        'refused_field_named' as measure,
        name,
        array_to_string(list_sort(string_split(name, '+')), ', ') as expected,
        array_to_string(list_sort(string_split(differs_in, ', ')), ', ') as measured,
        'what was made incomparable, and nothing else' as expected_from
    from compared
    union all
    select
        compared.execution_id,
        compared.stage,
        'perplexity_after_refusal' as measure,
        compared.name,
        coalesce(stated.sha256, 'a digest by the program') as expected,
        compared.sha256_after as measured,
        'the row as its program wrote it' as expected_from
    from compared
    left join stated
        on
            compared.execution_id = stated.execution_id
            and compared.name = stated.row_name
),

numbered as (
    select
        -- identity
        execution_id,
        stage,
        row_number() over (
            partition by execution_id order by measure, name
        ) as row_number,
        -- what
        '1.13' as claim,
        measure,
        'incomparable_perplexity/' || name as case_name,
        -- the two sides
        expected,
        measured,
        expected_from,
        if(
            expected = measured,
            '',
            'expected ' || expected || ', measured ' || measured
        ) as first_difference
    from sides
)

select * from numbered
order by execution_id, row_number
