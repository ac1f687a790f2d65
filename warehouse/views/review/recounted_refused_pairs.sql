-- grain: execution_id, claim, measure, case_name
-- reads: stg_refused_pairs, wanted_refused_pairs
-- review: no pair is missing, and of none is one of the two changes hidden
with

wanted as (
    select * from wanted_refused_pairs
),

tried as (
    select * from stg_refused_pairs
),

tagged as (
    select
        execution_id,
        stage,
        claim,
        measure,
        one_change,
        other_change,
        false as is_tried,
        true as is_right
    from wanted
    union all by name
    select
        execution_id,
        stage,
        claim,
        measure,
        least(first_change, second_change) as one_change,
        greatest(first_change, second_change) as other_change,
        true as is_tried,
        coalesce(
            received_reason = expected_reason
            and received_fields = expected_fields
            and sha256_before = sha256_after,
            false
        ) as is_right
    from tried
),

-- a pair that was tried and is not wanted is a misspelt one
pairs as (
    select
        execution_id,
        stage,
        claim,
        measure,
        bool_or(not is_tried) as is_wanted,
        bool_or(is_tried) and bool_and(is_right) as is_right
    from tagged
    group by execution_id, stage, claim, measure, one_change, other_change
),

counts as (
    select
        execution_id,
        stage,
        claim,
        'recounted_pairs_named' as measure,
        measure as case_name,
        count(*) filter (where is_wanted and is_right) as value_count,
        'of ' || count(*) || ' pairs' as detail
    from pairs
    group by execution_id, stage, claim, measure
    union all
    select
        execution_id,
        stage,
        claim,
        'recounted_pairs_hidden_or_missing' as measure,
        measure as case_name,
        count(*) filter (where not (is_wanted and is_right)) as value_count,
        'of ' || count(*) || ' pairs' as detail
    from pairs
    group by execution_id, stage, claim, measure
),

shaped as (
    select
        *,
        cast(null as double) as value_real,
        'pairs' as unit
    from counts
)

select * from shaped
order by execution_id, claim, measure, case_name
