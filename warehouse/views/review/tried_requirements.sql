-- grain: fault, requirement_id
-- reads: subject_claim_rows, raw.runs
-- review: in a trial, what each requirement reads about a system; a fault breaks some
with

rows_read as (
    select * from subject_claim_rows
    -- a trial runs some stages only; what the others would show is nobody's fault
    where execution_id is not null
),

tried as (
    select distinct
        subject,
        -- the name of a trial is that of its fault
        case when flow = 'built-in' then '' else flow end as fault
    from raw.runs
),

named as (
    select
        tried.fault,
        rows_read.*,
        rows_read.status in ('unmet', 'invalid') as is_unmet,
        rows_read.status in ('missing', 'absent') as is_missing,
        coalesce(cast(rows_read.value_count as double), rows_read.value_real)
            as number_read
    from rows_read
    inner join tried
        on rows_read.subject = tried.subject
),

-- the row that stands for all of its requirement: broken, and by most
ordered as (
    select
        *,
        row_number() over (
            partition by fault, requirement_id
            order by
                is_unmet desc, is_missing, margin nulls last, case_name, row_number
        ) as place
    from named
),

counted as (
    select
        -- what
        fault,
        stage as drilled_stage,
        requirement_id,
        claim,
        measure,
        relation,
        unit,
        max(limit_value) as limit_value,
        -- what the requirement read
        count(*) filter (where status = 'met') as rows_met,
        count(*) filter (where is_unmet) as rows_unmet,
        count(*) filter (where is_missing) as rows_missing,
        max(case_name) filter (where place = 1) as worst_case,
        max(number_read) filter (where place = 1) as worst_value,
        max(margin) filter (where place = 1) as worst_margin,
        coalesce(max(left(expected, 120)) filter (where place = 1), '') as expected,
        coalesce(
            max(left(value, 120))
            filter (where place = 1 and number_read is null),
            ''
        ) as measured,
        '' as failure
    from ordered
    group by fault, stage, requirement_id, claim, measure, relation, unit
)

select * from counted
order by fault, requirement_id
