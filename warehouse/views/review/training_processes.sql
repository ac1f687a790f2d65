-- grain: execution_id, row_number
-- reads: selected_executions, stg_program_executions
-- review: the interrupted process ended by signal 9, the resumption is another process
-- about: the selected subject
with

programs as (
    select stg_program_executions.*
    from stg_program_executions
    inner join selected_executions
        on stg_program_executions.execution_id = selected_executions.execution_id
    where
        stg_program_executions.stage in (
            'train_model', 'interrupt_training', 'resume_training'
        )
        and stg_program_executions.program = 'model.programs.train_model'
)

select * from programs
order by started_at, process_id
