-- grain: requirement_id
-- reads: claim_rows, raw.contract
-- review: the correct system stays far below each limit; the reason says why it stands
-- about: the selected subject
with

limits as (
    select * from claim_rows
    where
        relation = 'at_most'
        and status in ('met', 'unmet')
),

contract as (
    select * from raw.contract
),

measured as (
    select
        -- which limit
        claim,
        requirement_id,
        stage,
        measure,
        unit,
        limit_value,
        -- what the system under qualification measured
        count(*) as measured_rows,
        max(coalesce(cast(value_count as double), value_real)) as largest_value
    from limits
    group by claim, requirement_id, stage, measure, unit, limit_value
),

compared as (
    select
        measured.*,
        measured.largest_value / nullif(measured.limit_value, 0) as share_of_limit,
        contract.reason as limit_reason
    from measured
    inner join contract
        on measured.requirement_id = contract.requirement_id
)

select * from compared
order by share_of_limit desc nulls last, requirement_id
