-- grain: execution_id, row_number
-- reads: selected_executions, stg_program_executions
-- review: no process holds 2 GiB
-- about: the selected subject
with

programs as (
    select stg_program_executions.*
    from stg_program_executions
    inner join selected_executions
        on stg_program_executions.execution_id = selected_executions.execution_id
)

select * from programs
order by peak_memory_bytes desc nulls last, started_at, process_id
