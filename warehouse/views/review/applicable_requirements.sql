-- grain: subject, requirement_id
-- reads: subjects, raw.contract, raw.contract_presets
-- review: a claim of which nothing applies to a subject is not demonstrated by it
-- kept: all
with

subjects as (
    select * from subjects
),

contract as (
    select * from raw.contract
),

presets as (
    select * from raw.contract_presets
),

applicable as (
    select
        subjects.subject,
        subjects.preset,
        subjects.has_completed_run,
        contract.*
    from contract
    inner join presets
        on contract.requirement_id = presets.requirement_id
    inner join subjects
        on
            (presets.preset = '' or presets.preset = subjects.preset)
            and (contract.scope = 'any' or subjects.is_declared)
)

select * from applicable
order by subject, requirement_id
