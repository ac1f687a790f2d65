-- grain: execution_id, table_name, column_name
-- reads: raw.invalid_columns, stg_measurements, stg_refusals, raw.reason_codes
-- review: no row; a value that no table may hold makes every claim on it fail
-- kept: all
with

columns_with_invalid as (
    select
        execution_id,
        stage,
        table_name,
        column_name,
        invalid_rows,
        'null where null is never allowed, NaN or infinite' as problem
    from raw.invalid_columns
),

measurements as (
    select * from stg_measurements
),

refusals as (
    select * from stg_refusals
),

reason_codes as (
    select * from raw.reason_codes
),

-- a measurement is one value or one reason, never both and never neither
ambiguous as (
    select
        execution_id,
        stage,
        'measurements' as table_name,
        'value_count, value_real, reason' as column_name,
        count(*) as invalid_rows,
        'not exactly one of the three is set' as problem
    from measurements
    where
        (value_count is not null)::integer
        + (value_real is not null)::integer
        + (reason is not null)::integer
        <> 1
    group by execution_id, stage
),

unknown_reasons as (
    select
        measurements.execution_id,
        measurements.stage,
        'measurements' as table_name,
        'reason' as column_name,
        count(*) as invalid_rows,
        'not in the list of reason codes' as problem
    from measurements
    where
        measurements.reason is not null
        and measurements.reason not in (select reason_codes.reason from reason_codes)
    group by measurements.execution_id, measurements.stage
),

unknown_refusals as (
    select
        refusals.execution_id,
        refusals.stage,
        'refusals' as table_name,
        'expected_reason' as column_name,
        count(*) as invalid_rows,
        'not in the list of reason codes' as problem
    from refusals
    where refusals.expected_reason not in (select reason_codes.reason from reason_codes)
    group by refusals.execution_id, refusals.stage
),

invalid as (
    select * from columns_with_invalid
    union all
    select * from ambiguous
    union all
    select * from unknown_reasons
    union all
    select * from unknown_refusals
)

select * from invalid
order by stage, execution_id, table_name, column_name
