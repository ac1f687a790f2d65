-- grain: subject, requirement_id, source, row_number, case_name
-- reads: subject_claim_rows, subjects
-- review: each row that is not met has one sentence of what would change it
with

subject_claim_rows as (
    select * from subject_claim_rows
),

subjects as (
    select * from subjects
),

described as (
    select
        subject_claim_rows.*,
        -- whether the command without manifest and settings is about this subject
        subjects.is_declared or subjects.run_count = 0 as is_bare_command,
        -- words of the sentence
        subject_claim_rows.measure
        || coalesce(' ' || nullif(subject_claim_rows.case_name, ''), '')
        || ' of ' || subject_claim_rows.stage as row_text,
        coalesce(
            format('{:.6g}', subject_claim_rows.value_real),
            cast(subject_claim_rows.value_count as varchar),
            left(subject_claim_rows.value, 16)
        )
        || coalesce(' ' || nullif(subject_claim_rows.unit, ''), '') as value_text,
        ' (execution ' || left(subject_claim_rows.execution_id, 8) || ')' as origin
    from subject_claim_rows
    inner join subjects
        on subject_claim_rows.subject = subjects.subject
),

steps as (
    select
        *,
        case
            when status = 'unmet'
                then
                    'look at ' || row_text || ', which is ' || value_text
                    || ' and must be '
                    || if(relation = 'equal', 'equal to', replace(relation, '_', ' '))
                    || coalesce(' ' || limit_text, ' ' || left(expected, 16), '')
                    || origin
            when status = 'invalid'
                then 'look at ' || row_text || ': ' || detail || origin
            when status = 'missing' then 'look at ' || row_text || ': ' || detail
            when status = 'absent' and stage = 'qualify_target'
                then
                    'needs the target: `harness target plan` prints the commands ('
                    || row_text || ')'
            when status = 'absent' and stage = 'rehearse_remote'
                then
                    'prefect deployment run target/rehearsal --watch (' || detail
                    || '; its hosts need a worker each)'
            when status = 'absent' and is_run_needed and not is_bare_command
                then 'run the same command again (' || detail || ')'
            when status = 'absent' and is_run_needed
                then
                    -- a proof has a command of its own, called like its stage
                    'harness '
                    || case
                        when starts_with(stage, 'certify_')
                            then replace(stage, '_', ' ')
                        when starts_with(stage, 'drill_') then 'drill'
                        when stage = 'rehearse_target' then 'target rehearse'
                        else 'run'
                    end
                    || case
                        when preset in ('', 'fixture') then ''
                        else ' --preset ' || preset
                    end
                    || ' (' || detail || ')'
            when status = 'absent'
                then 'nothing measures it yet: ' || row_text || ' (' || detail || ')'
        end as step,
        case status
            when 'unmet' then 1
            when 'invalid' then 2
            when 'missing' then 3
            else 4
        end as step_order
    from described
)

select * from steps
order by subject, review_task, claim_number, requirement_id, source, row_number
