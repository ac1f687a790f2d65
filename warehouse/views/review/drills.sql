-- grain: fault
-- reads: stg_planted_faults, selected_executions, drill_rows, fault_stages
-- review: each fault is killed by the claim that has to catch it; a benign one by none
-- about: the selected subject
with

faults as (
    select * from stg_planted_faults
),

executions as (
    select execution_id from selected_executions
    where is_intact
),

planted as (
    select faults.*
    from faults
    inner join executions
        on faults.execution_id = executions.execution_id
),

drilled as (
    select * from drill_rows
),

stages as (
    select * from fault_stages
),

-- a claim that reads nothing of the system without a fault is not measured yet; what
-- that system breaks is measured, and waits for nothing
measured as (
    select distinct claim from drilled
    where
        fault = ''
        and rows_met + rows_unmet > 0
),

turned as (
    select
        drilled.fault,
        count(distinct drilled.claim) as claims_turned,
        count(*) as requirements_turned,
        bool_or(drilled.claim = planted.claim) as is_turned_by_own,
        arg_min(drilled.claim, drilled.row_number) as first_claim,
        arg_min(drilled.measure, drilled.row_number) as first_measure,
        string_agg(distinct drilled.claim, ' ' order by drilled.claim) as claims
    from drilled
    inner join planted
        on drilled.fault = planted.fault
    where drilled.is_turned
    group by drilled.fault
),

stopped as (
    select
        fault,
        min(drilled_stage) as stopped_stage,
        min(failure) as failure
    from drilled
    where failure <> ''
    group by fault
),

described as (
    select
        -- what
        stages.stage,
        stages.stage_number,
        planted.fault_group,
        planted.fault,
        planted.claim,
        planted.is_benign,
        planted.summary,
        planted.replaces,
        planted.source,
        -- who noticed
        not planted.is_benign
        and coalesce(turned.is_turned_by_own, false) as is_killed,
        not planted.is_benign and measured.claim is null as is_waiting,
        stopped.fault is not null as is_stopped,
        coalesce(turned.first_claim, '') as first_claim,
        coalesce(turned.first_measure, '') as first_measure,
        coalesce(turned.claims_turned, 0) as claims_turned,
        coalesce(turned.claims, '') as claims,
        coalesce(stopped.stopped_stage, '') as stopped_stage,
        coalesce(stopped.failure, '') as failure
    from planted
    inner join stages
        on planted.fault = stages.fault
    left join measured
        on planted.claim = measured.claim
    left join turned
        on planted.fault = turned.fault
    left join stopped
        on planted.fault = stopped.fault
),

named as (
    select
        *,
        case
            when is_benign and claims_turned > 0 then 'false alarm'
            when is_benign and is_stopped then 'false alarm'
            when is_benign then 'silent'
            when is_killed then 'killed'
            -- what stops without a fault too must not look like a claim of later
            when is_stopped then 'stopped'
            when is_waiting then 'waiting'
            else 'survived'
        end as outcome
    from described
)

select * from named
order by stage_number nulls last, stage, fault
