-- grain: claim
-- reads: claim_steps, raw.selection, raw.claims, raw.contract
-- review: what the stages of this run show of each claim, and its most telling row
-- about: the selected subject
with

steps as (
    select * from claim_steps
),

selection as (
    select * from raw.selection
),

claims as (
    select * from raw.claims
),

-- a check takes smaller samples than the declared ones, which these count
whole as (
    select requirement_id from raw.contract
    where scope = 'whole'
),

-- a check of one review task has few of the stages; rows of the others are elsewhere
asked as (
    select
        steps.*,
        steps.execution_id is not null as is_here,
        case
            when steps.status in ('unmet', 'invalid') then 1
            when steps.status = 'met' then 3
            else 2
        end as status_order
    from steps
    inner join selection
        on steps.subject = selection.subject
    left join whole
        on steps.requirement_id = whole.requirement_id
    where whole.requirement_id is null
),

counted as (
    select
        claim,
        count(*) filter (where is_here and status = 'met') as rows_met,
        count(*) filter (where is_here and status_order = 1) as rows_unmet,
        count(*) filter (where is_here and status_order = 2) as rows_missing,
        count(*) filter (where not is_here) as rows_elsewhere
    from asked
    group by claim
),

telling as (
    select *
    from asked
    where is_here
    qualify row_number() over (
        partition by claim
        order by
            status_order,
            abs(margin) nulls last,
            requirement_id,
            source,
            row_number,
            case_name
    ) = 1
),

checked as (
    select
        -- identity
        claims.review_task,
        claims.claim_number,
        claims.claim,
        claims.statement,
        -- verdict: the order of the conditions is the rule
        case
            when counted.rows_unmet > 0 then 'revise'
            when counted.rows_missing > 0 then 'not demonstrated'
            when counted.rows_met = 0 then 'not demonstrated'
            else 'accept'
        end as verdict,
        counted.rows_met,
        counted.rows_unmet,
        counted.rows_missing,
        counted.rows_elsewhere,
        -- the row that says most: unmet, then missing, then nearest to its limit
        telling.stage,
        telling.measure,
        telling.case_name,
        telling.status,
        telling.value,
        telling.value_count,
        telling.value_real,
        telling.expected,
        telling.relation,
        telling.limit_text,
        telling.unit,
        telling.detail
    from claims
    inner join counted
        on claims.claim = counted.claim
    inner join telling
        on claims.claim = telling.claim
)

select * from checked
order by review_task, claim_number
