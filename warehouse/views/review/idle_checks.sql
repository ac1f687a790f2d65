-- grain: claim
-- reads: raw.claims, raw.contract, drill_rows, drills
-- review: empty; a claim stands here that is judged today and that no fault has turned
-- about: the selected subject
with

claims as (
    select * from raw.claims
),

judged as (
    select distinct claim from raw.contract
    where relation <> 'reported'
),

drilled as (
    select * from drill_rows
),

measured as (
    select
        claim,
        count(*) as requirements_measured,
        string_agg(distinct drilled_stage, ' ' order by drilled_stage)
            as drilled_stages
    from drilled
    where
        fault = ''
        and rows_met > 0
        and relation <> 'reported'
    group by claim
),

-- only what is a fault shows that a check can fail
turned as (
    select distinct drilled.claim
    from drilled
    inner join drills
        on drilled.fault = drills.fault
    where
        drilled.is_turned
        and not drills.is_benign
),

idle as (
    select
        claims.claim,
        claims.statement,
        measured.requirements_measured,
        measured.drilled_stages
    from claims
    inner join judged
        on claims.claim = judged.claim
    inner join measured
        on claims.claim = measured.claim
    left join turned
        on claims.claim = turned.claim
    where turned.claim is null
)

select * from idle
order by claim
