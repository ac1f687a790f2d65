-- grain: subject, requirement_id, source, row_number, case_name
-- reads: judged_rows, absent_rows, applicable_requirements, subject_stages
-- reads: invalid_values, raw.claims, raw.reason_codes
-- review: the rows each claim rests on; all but the met ones say what is wrong
-- kept: all
with

requirements as (
    select * from applicable_requirements
),

stages as (
    select * from subject_stages
),

claims as (
    select * from raw.claims
),

reason_codes as (
    select * from raw.reason_codes
),

absent as (
    select
        subject,
        requirement_id,
        'absent' as source,
        0 as row_number,
        case_name,
        'absent' as status,
        is_run_needed,
        detail
    from absent_rows
),

-- one value that may not be there discredits the whole execution
discredited as (
    select
        requirements.subject,
        requirements.requirement_id,
        'invalid_values' as source,
        row_number() over (
            partition by requirements.subject, requirements.requirement_id
            order by invalid_values.table_name, invalid_values.column_name
        ) as row_number,
        '' as case_name,
        'invalid' as status,
        invalid_values.table_name || '.' || invalid_values.column_name || ' is '
        || invalid_values.problem || ' in ' || invalid_values.invalid_rows
        || ' rows' as detail
    from requirements
    inner join stages
        on
            requirements.subject = stages.subject
            and requirements.stage = stages.stage
    inner join invalid_values
        on stages.execution_id = invalid_values.execution_id
),

every_row as (
    select
        *,
        false as is_run_needed
    from judged_rows
    union all by name
    select * from absent
    union all by name
    select * from discredited
),

described as (
    select
        -- identity
        requirements.subject,
        claims.review_task,
        claims.claim_number,
        requirements.claim,
        requirements.requirement_id,
        every_row.source,
        every_row.row_number,
        -- what
        requirements.stage,
        requirements.measure,
        every_row.case_name,
        every_row.status,
        -- the value and its limit
        coalesce(
            cast(every_row.value_count as varchar),
            cast(every_row.value_real as varchar),
            every_row.measured,
            ''
        ) as value,
        every_row.value_count,
        every_row.value_real,
        every_row.expected,
        requirements.relation,
        requirements.limit_value,
        coalesce(
            cast(requirements.limit_count as varchar),
            cast(requirements.limit_value as varchar)
        ) as limit_text,
        every_row.margin,
        requirements.unit,
        -- where it comes from
        stages.execution_id,
        stages.state,
        stages.finished_at,
        stages.host,
        -- why
        every_row.reason,
        concat_ws('; ', reason_codes.meaning, nullif(every_row.detail, '')) as detail,
        every_row.is_run_needed,
        requirements.preset,
        requirements.sampling
    from every_row
    inner join requirements
        on
            every_row.subject = requirements.subject
            and every_row.requirement_id = requirements.requirement_id
    inner join claims
        on requirements.claim = claims.claim
    left join stages
        on
            requirements.subject = stages.subject
            and requirements.stage = stages.stage
    left join reason_codes
        on every_row.reason = reason_codes.reason
)

select * from described
order by subject, review_task, claim_number, requirement_id, source, row_number
