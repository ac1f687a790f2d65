-- grain: execution_id, measure
-- reads: stg_initializations
-- review: five or more, each with a loss or with the reason of its failure
with

initializations as (
    select * from stg_initializations
),

counts as (
    select
        execution_id,
        stage,
        'recounted_initializations' as measure,
        count(distinct initialization_seed) as value_count
    from initializations
    group by execution_id, stage
    union all
    select
        execution_id,
        stage,
        'recounted_initializations_unexplained' as measure,
        count(*) filter (
            where (heldout_nats_per_token is null) <> (failure_reason is not null)
            or (failure_reason is null and updates <> asked_updates)
        ) as value_count
    from initializations
    group by execution_id, stage
    union all
    -- two seeds that give one training are one seed
    select
        execution_id,
        stage,
        'recounted_initializations_alike' as measure,
        count(parameters_sha256) - count(distinct parameters_sha256) as value_count
    from initializations
    group by execution_id, stage
),

shaped as (
    select
        execution_id,
        stage,
        '2.8' as claim,
        measure,
        '' as case_name,
        value_count,
        cast(null as double) as value_real,
        'initializations' as unit,
        'from rows of initializations' as detail
    from counts
)

select * from shaped
order by execution_id, measure
