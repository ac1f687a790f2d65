-- grain: source, execution_id, row_number
-- reads: evidence_rows, raw.contract, selected_executions
-- review: no row; a measure that no claim asks for is a misspelt or forgotten one
-- about: the selected subject
with

evidence as (
    select * from evidence_rows
),

executions as (
    select * from selected_executions
),

contract as (
    select * from raw.contract
),

unlisted as (
    select
        evidence.*,
        executions.stage
    from evidence
    inner join executions
        on evidence.execution_id = executions.execution_id
    anti join contract
        on
            evidence.claim = contract.claim
            and evidence.measure = contract.measure
            and executions.stage = contract.stage
)

select * from unlisted
order by source, execution_id, row_number
