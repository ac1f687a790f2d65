-- grain: run_id, requirement_id, source, row_number
-- reads: used_executions, judged_evidence, raw.contract, raw.claims
-- review: a value moves where something changed; no status turns from met to unmet
with

used as (
    select * from used_executions
),

contract as (
    select * from raw.contract
),

claims as (
    select * from raw.claims
),

judged as (
    select
        *,
        row_number() over (
            partition by
                preset, is_declared, execution_id, requirement_id, case_name
            order by source, row_number
        ) as occurrence
    from judged_evidence
),

measured as (
    select
        -- the run
        used.run_id,
        used.run_started_at,
        used.flow,
        used.preset,
        used.is_declared,
        used.data_sha256,
        -- the row
        claims.review_task,
        claims.claim_number,
        contract.claim,
        contract.measure,
        judged.case_name,
        judged.occurrence,
        judged.requirement_id,
        judged.source,
        judged.row_number,
        contract.stage,
        used.execution_id,
        used.state,
        -- the value and its limit
        judged.status,
        coalesce(cast(judged.value_count as double), judged.value_real) as value,
        contract.relation,
        contract.limit_value,
        contract.unit,
        judged.margin
    from used
    inner join judged
        on
            used.execution_id = judged.execution_id
            and used.preset = judged.preset
            and used.is_declared = judged.is_declared
    inner join contract
        on
            judged.requirement_id = contract.requirement_id
            and used.stage = contract.stage
    inner join claims
        on contract.claim = claims.claim
),

-- the run before it of the same preset and data, with the declared settings or without
moved as (
    select
        *,
        lag(run_id) over history as previous_run_id,
        lag(value) over history as previous_value,
        lag(status) over history as previous_status,
        lag(execution_id) over history as previous_execution_id
    from measured
    window history as (
        partition by
            preset, is_declared, data_sha256, requirement_id, case_name, occurrence
        order by run_started_at, run_id
    )
),

described as (
    select
        * exclude (
            review_task, claim_number, occurrence, previous_execution_id
        ),
        value - previous_value as change,
        -- what rests on the same execution is no second measurement
        coalesce(execution_id <> previous_execution_id, true) as is_recomputed,
        row_number() over (
            order by
                run_started_at desc,
                run_id asc,
                review_task asc,
                claim_number asc,
                requirement_id asc,
                case_name asc,
                occurrence asc
        ) as place
    from moved
)

select * exclude (place) from described
order by place
