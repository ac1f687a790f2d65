-- grain: fault
-- reads: stg_planted_faults, selected_executions, drill_rows
-- review: each fault has the stage of the DAG whose evidence has to show it
-- about: the selected subject
with

-- the DAG in its order, then the proofs beside it
listed as (
    select
        [
            'tokenize_corpus',
            'train_model',
            'interrupt_training',
            'resume_training',
            'evaluate_heldout',
            'quantize_cache',
            'export_endpoints',
            'profile_runtime',
            'qualify_tpu',
            'certify_recovery',
            'drill_recovery',
            'certify_crash',
            'rehearse_target',
            'rehearse_remote',
            'train_on_target',
            'qualify_target'
        ] as names
),

dag as (
    select
        unnest(names) as stage,
        generate_subscripts(names, 1) as stage_number
    from listed
),

faults as (
    select * from stg_planted_faults
),

executions as (
    select execution_id from selected_executions
    where is_intact
),

planted as (
    select
        faults.fault,
        faults.fault_group,
        faults.claim
    from faults
    inner join executions
        on faults.execution_id = executions.execution_id
),

drilled as (
    select * from drill_rows
),

-- where its own claim turned, else where that was read, else where it was tried
ranked as (
    select
        planted.fault,
        -- a promise of store or workflow belongs to no stage
        coalesce(dag.stage, planted.fault_group) as stage,
        dag.stage_number,
        row_number() over (
            partition by planted.fault
            order by
                drilled.claim = planted.claim and drilled.is_turned desc nulls last,
                drilled.claim = planted.claim desc nulls last,
                dag.stage_number nulls last,
                drilled.row_number
        ) as place
    from planted
    left join drilled
        on planted.fault = drilled.fault
    left join dag
        on drilled.drilled_stage = dag.stage
)

select
    fault,
    stage,
    stage_number
from ranked
where place = 1
order by stage_number nulls last, stage, fault
