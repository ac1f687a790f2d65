-- grain: execution_id, measure
-- reads: perplexity_comparisons
-- review: what may be compared is compared, and nothing else
with

own as (
    select * from perplexity_comparisons
    where execution_id = other_execution_id
),

counts as (
    select
        execution_id,
        stage,
        'recounted_comparable_perplexities' as measure,
        count(*) filter (where perplexity_ratio is not null) as value_count
    from own
    group by execution_id, stage
    union all
    select
        execution_id,
        stage,
        'recounted_perplexities_wrongly_treated' as measure,
        count(*) filter (
            where reason is distinct from expected_reason
            or (reason is null) <> (perplexity_ratio is not null)
        ) as value_count
    from own
    group by execution_id, stage
),

shaped as (
    select
        execution_id,
        stage,
        '1.13' as claim,
        measure,
        '' as case_name,
        value_count,
        cast(null as double) as value_real,
        'comparisons' as unit,
        'from rows of perplexities' as detail
    from counts
)

select * from shaped
order by execution_id, measure
