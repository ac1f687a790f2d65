-- grain: subject
-- reads: subjects, subject_verdicts
-- review: what each subject has shown until now; the newest has nothing to revise
with

subjects as (
    select * from subjects
    where run_count > 0
),

verdicts as (
    select * from subject_verdicts
),

counted as (
    select
        subject,
        count(*) filter (where starts_with(verdict, 'accept')) as accepted,
        count(*) filter (where verdict = 'revise') as revised,
        count(*) filter (where verdict = 'not demonstrated') as open,
        count(*) as claims
    from verdicts
    group by subject
),

described as (
    select
        subjects.subject,
        subjects.preset,
        subjects.is_declared,
        subjects.run_count as runs,
        subjects.newest_run_id,
        subjects.newest_run_at,
        counted.accepted,
        counted.revised,
        counted.open,
        counted.accepted = counted.claims as is_accepted
    from subjects
    inner join counted
        on subjects.subject = counted.subject
)

select * from described
order by newest_run_at desc, subject
