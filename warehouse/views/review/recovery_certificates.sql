-- grain: certificate, case_name
-- reads: selected_executions, stg_measurements, stg_comparisons
-- review: no first divergence; other process than the killed; kills above 1: one run
-- about: the selected subject
with recursive

certificates as (
    select
        execution_id,
        case
            when stage = 'interrupt_training' then 'resume_training'
            else stage
        end as certificate
    from selected_executions
    where
        stage in (
            'interrupt_training', 'resume_training', 'certify_recovery', 'certify_crash'
        )
),

measurements as (
    select
        certificates.certificate,
        stg_measurements.case_name,
        stg_measurements.measure,
        stg_measurements.row_number,
        stg_measurements.value_count
    from stg_measurements
    inner join certificates
        on stg_measurements.execution_id = certificates.execution_id
),

processes as (
    select
        certificate,
        case_name,
        max(value_count) filter (where measure = 'killed_by_signal')
            as killed_by_signal,
        max(value_count) filter (where measure = 'interrupted_process_id')
            as killed_process_id,
        max(value_count) filter (where measure = 'resumed_process_id')
            as restored_process_id,
        max(value_count) filter (where measure = 'restored_update')
            as restored_update,
        max(value_count) filter (where measure = 'updates_replayed')
            as updates_replayed,
        -- in the order in which they were restored
        min(row_number) filter (where measure = 'resumed_process_id') as place
    from measurements
    group by certificate, case_name
    having bool_or(measure in ('interrupted_process_id', 'resumed_process_id'))
),

-- the process of a later kill is the one that restored from the kill before
kills as (
    select
        certificate,
        case_name,
        restored_process_id,
        1 as kills_of_training
    from processes
    where
        killed_process_id is not null
        and not exists (
            select 1 from processes as earlier
            where
                earlier.certificate = processes.certificate
                and earlier.restored_process_id = processes.killed_process_id
        )
    union all
    select
        processes.certificate,
        processes.case_name,
        processes.restored_process_id,
        kills.kills_of_training + 1 as kills_of_training
    from processes
    inner join kills
        on
            processes.certificate = kills.certificate
            and processes.killed_process_id = kills.restored_process_id
),

compared as (
    select
        certificates.certificate,
        stg_comparisons.measure,
        stg_comparisons.first_difference,
        stg_comparisons.expected = stg_comparisons.measured as is_identical,
        regexp_replace(stg_comparisons.case_name, '/update-[0-9]+$', '') as case_name,
        regexp_extract(stg_comparisons.case_name, 'update-[0-9]+$') as update_name
    from stg_comparisons
    inner join certificates
        on stg_comparisons.execution_id = certificates.execution_id
    -- the process that restored has to be another one
    where stg_comparisons.measure <> 'restoring_process'
),

parted as (
    select
        certificate,
        case_name,
        -- updates made after the restore, each in every kind
        count(distinct update_name) filter (
            where
            update_name <> ''
            and (starts_with(measure, 'resumed_') or measure like 'update_after_%')
        ) as updates_compared,
        coalesce(
            arg_min(first_difference, (update_name, measure)) filter (
                where not is_identical
            ),
            ''
        ) as first_divergence
    from compared
    group by certificate, case_name
),

described as (
    select
        processes.*,
        -- 1 where its process was the first of its training, 0 where none was killed
        coalesce(kills.kills_of_training, 0) as kills_of_training,
        coalesce(parted.updates_compared, 0) as updates_compared,
        coalesce(parted.first_divergence, 'nothing was compared') as first_divergence
    from processes
    left join parted
        on
            processes.certificate = parted.certificate
            and processes.case_name = parted.case_name
    left join kills
        on
            processes.certificate = kills.certificate
            and processes.case_name = kills.case_name
)

select * exclude (place) from described
order by certificate, place, case_name
