-- grain: subject, requirement_id, source, row_number
-- reads: subjects, subject_stages, judged_evidence
-- review: every row that a subject rests on, held against its requirement; all are met
-- kept: all
with

subjects as (
    select * from subjects
),

stages as (
    select * from subject_stages
    where is_intact
),

judged as (
    select * from judged_evidence
),

rested_on as (
    select
        subjects.subject,
        judged.requirement_id,
        judged.source,
        judged.row_number,
        judged.case_name,
        judged.status,
        judged.value_count,
        judged.value_real,
        judged.expected,
        judged.measured,
        judged.margin,
        judged.reason,
        judged.detail
    from subjects
    inner join stages
        on subjects.subject = stages.subject
    inner join judged
        on
            stages.execution_id = judged.execution_id
            and subjects.preset = judged.preset
            and subjects.is_declared = judged.is_declared
)

select * from rested_on
order by subject, requirement_id, source, row_number
