-- grain: fault, claim
-- reads: drills, drill_rows
-- review: a fault turns the claim that has to catch it, and often others too
-- about: the selected subject
with

drills as (
    select * from drills
),

turned as (
    select * from drill_rows
    where is_turned
),

killers as (
    select
        turned.fault,
        turned.claim,
        arg_min(turned.drilled_stage, turned.row_number) as drilled_stage,
        count(*) as requirements_turned,
        sum(turned.rows_unmet) as rows_unmet,
        arg_min(turned.measure, turned.row_number) as measure,
        arg_min(turned.worst_case, turned.row_number) as worst_case,
        arg_min(
            coalesce(
                cast(turned.worst_value as varchar),
                nullif(turned.measured, ''),
                'nothing'
            ),
            turned.row_number
        ) as with_fault,
        arg_min(
            coalesce(cast(turned.correct_value as varchar), turned.expected),
            turned.row_number
        ) as without_fault,
        arg_min(
            concat_ws(' ', turned.relation, cast(turned.limit_value as varchar)),
            turned.row_number
        ) as required
    from turned
    group by turned.fault, turned.claim
),

described as (
    select
        drills.stage,
        drills.stage_number,
        drills.fault_group,
        drills.fault,
        drills.claim as own_claim,
        drills.is_benign,
        killers.claim,
        killers.drilled_stage,
        killers.requirements_turned,
        killers.rows_unmet,
        killers.measure,
        killers.worst_case,
        killers.with_fault,
        killers.without_fault,
        killers.required,
        killers.claim = drills.claim as is_own_claim,
        killers.claim = drills.first_claim as is_first
    from killers
    inner join drills
        on killers.fault = drills.fault
)

select * from described
order by
    stage_number nulls last, stage, fault, is_first desc, is_own_claim desc, claim
