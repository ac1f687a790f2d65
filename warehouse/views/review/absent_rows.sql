-- grain: subject, requirement_id, case_name
-- reads: applicable_requirements, raw.contract_cases, subject_stages, judged_rows
-- review: every case that the contract asks for and that no row answers, with the cause
-- kept: all
with

requirements as (
    select * from applicable_requirements
),

cases as (
    select * from raw.contract_cases
),

stages as (
    select * from subject_stages
),

judged as (
    select * from judged_rows
),

required as (
    select
        requirements.subject,
        requirements.requirement_id,
        requirements.stage,
        requirements.has_completed_run,
        requirements.required_count,
        cases.case_name
    from requirements
    inner join cases
        on requirements.requirement_id = cases.requirement_id
),

counted as (
    select
        required.subject,
        required.requirement_id,
        required.stage,
        required.has_completed_run,
        required.required_count,
        required.case_name,
        -- a proof is made by a command of its own and not by a run
        regexp_matches(required.stage, '^(certify|drill)_') as is_proof,
        count(judged.source) as found_rows
    from required
    left join judged
        on
            required.subject = judged.subject
            and required.requirement_id = judged.requirement_id
            and (
                required.case_name = ''
                or required.case_name = judged.case_name
                or starts_with(judged.case_name, required.case_name || '/')
            )
    group by all
),

absent as (
    select
        counted.subject,
        counted.requirement_id,
        counted.case_name,
        -- running again helps when the stage has not run, or was damaged since
        case
            when stages.execution_id is null
                then
                    not counted.has_completed_run
                    or counted.is_proof
            else not stages.is_intact
        end as is_run_needed,
        case
            when counted.is_proof and stages.execution_id is null
                then 'no proof of this subject has an execution of ' || counted.stage
            when stages.execution_id is null and counted.has_completed_run
                then 'a completed run has no stage ' || counted.stage
            when stages.execution_id is null
                then 'no run of this subject has an execution of ' || counted.stage
            when not stages.is_intact
                then
                    'execution ' || left(stages.execution_id, 8) || ' is damaged: '
                    || stages.problem
            else
                counted.found_rows || ' of ' || counted.required_count
                || ' rows in execution ' || left(stages.execution_id, 8)
        end as detail
    from counted
    left join stages
        on
            counted.subject = stages.subject
            and counted.stage = stages.stage
    where counted.found_rows < counted.required_count
)

select * from absent
order by subject, requirement_id, case_name
