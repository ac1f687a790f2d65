-- grain: source, execution_id, row_number
-- reads: stg_measurements, stg_comparisons, stg_refusals, derived_measurements
-- reads: derived_refusals, derived_comparisons
-- review: everything that a claim can be judged on, in one shape
with

measured as (
    select
        'measurements' as source,
        *
    from stg_measurements
),

derived as (
    select
        'derived_measurements' as source,
        *
    from derived_measurements
),

numeric as (
    select * from measured
    union all by name
    select * from derived
),

numbers as (
    select
        source,
        execution_id,
        row_number,
        claim,
        measure,
        case_name,
        'number' as evidence_kind,
        value_count,
        value_real,
        unit,
        cast(null as varchar) as expected,
        cast(null as varchar) as measured,
        reason,
        detail
    from numeric
),

every_comparison as (
    select
        'comparisons' as source,
        *
    from stg_comparisons
    union all by name
    select
        'derived_comparisons' as source,
        *
    from derived_comparisons
),

comparisons as (
    select
        source,
        execution_id,
        row_number,
        claim,
        measure,
        case_name,
        'comparison' as evidence_kind,
        cast(null as bigint) as value_count,
        cast(null as double) as value_real,
        '' as unit,
        expected,
        measured,
        cast(null as varchar) as reason,
        first_difference as detail
    from every_comparison
),

every_refusal as (
    select
        'refusals' as source,
        *
    from stg_refusals
    union all by name
    select
        'derived_refusals' as source,
        *
    from derived_refusals
),

refusals as (
    select
        source,
        execution_id,
        row_number,
        claim,
        measure,
        case_name,
        'refusal' as evidence_kind,
        cast(null as bigint) as value_count,
        cast(null as double) as value_real,
        '' as unit,
        expected_reason as expected,
        received_reason as measured,
        cast(null as varchar) as reason,
        message as detail
    from every_refusal
),

evidence as (
    select * from numbers
    union all
    select * from comparisons
    union all
    select * from refusals
)

select * from evidence
order by source, execution_id, row_number
