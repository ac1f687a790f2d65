-- grain: execution_id, case_name
-- reads: stg_evaluations, used_splits
-- review: 0 everywhere; a split is evaluated on all its documents and no others
with

evaluations as (
    select * from stg_evaluations
),

splits as (
    select * from used_splits
),

compared as (
    select
        evaluations.execution_id,
        evaluations.stage,
        evaluations.split,
        coalesce(
            evaluations.documents <> splits.documents
            or evaluations.valid_targets <> splits.valid_targets,
            true
        ) as is_apart
    from evaluations
    inner join splits
        on
            evaluations.execution_id = splits.execution_id
            and evaluations.split = splits.split
),

counts as (
    select
        execution_id,
        stage,
        '2.9' as claim,
        'recounted_evaluations_of_other_targets' as measure,
        split as case_name,
        count(*) filter (where is_apart) as value_count,
        cast(null as double) as value_real,
        'evaluations' as unit,
        'of ' || count(*) || ' evaluations' as detail
    from compared
    group by execution_id, stage, split
)

select * from counts
order by execution_id, case_name
