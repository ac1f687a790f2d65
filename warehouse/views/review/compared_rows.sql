-- grain: side, stage, source, claim, measure, case_name, occurrence
-- reads: subject_stages, comparison_stages, evidence_rows, judged_rows, raw.contract
-- review: what each side measured, and how the contract looks at it
with

stages as (
    select * from subject_stages
    where
        subject in ('before', 'after')
        and is_intact
),

compared as (
    select * from comparison_stages
),

contract as (
    select * from raw.contract
),

-- what the contract asks of a measure, in whichever preset and scope
asked as (
    select
        stage,
        claim,
        measure,
        bool_or(relation in ('equal', 'identical', 'refused')) as is_exact,
        bool_or(relation in ('at_most', 'at_least', 'above')) as is_limited,
        arg_min(limit_value, requirement_id)
        filter (where relation in ('at_most', 'at_least', 'above')) as limit_value
    from contract
    group by stage, claim, measure
),

-- several requirements may hold a row; the worst counts
judged as (
    select
        judged_rows.subject as side,
        contract.stage,
        judged_rows.source,
        judged_rows.row_number,
        max(
            case judged_rows.status
                when 'met' then 0
                when 'missing' then 1
                else 2
            end
        ) as status_rank
    from judged_rows
    inner join contract
        on judged_rows.requirement_id = contract.requirement_id
    where judged_rows.subject in ('before', 'after')
    group by all
),

described as (
    select
        stages.subject as side,
        stages.stage,
        row_number() over (
            partition by
                stages.subject,
                stages.stage,
                evidence_rows.source,
                evidence_rows.claim,
                evidence_rows.measure,
                evidence_rows.case_name
            order by evidence_rows.row_number
        ) as occurrence,
        evidence_rows.source,
        evidence_rows.claim,
        evidence_rows.measure,
        evidence_rows.case_name,
        evidence_rows.evidence_kind,
        evidence_rows.value_count,
        evidence_rows.value_real,
        evidence_rows.unit,
        evidence_rows.expected,
        evidence_rows.measured,
        evidence_rows.detail,
        -- a refusal that did not come is an answer too
        case evidence_rows.evidence_kind
            when 'number'
                then
                    isfinite(
                        coalesce(
                            cast(evidence_rows.value_count as double),
                            evidence_rows.value_real,
                            cast('nan' as double)
                        )
                    )
            when 'comparison'
                then coalesce(evidence_rows.measured, '') <> ''
            else coalesce(evidence_rows.expected, '') <> ''
        end as has_value,
        case
            when evidence_rows.unit = 'nanoseconds' then 'timing'
            -- in a stage that measures time, what is no count is made of times
            when compared.measures_time and evidence_rows.value_real is not null
                then 'timing'
            when asked.is_exact then 'exact'
            when asked.is_limited then 'limited'
            else 'reported'
        end as kind,
        asked.limit_value,
        judged.status_rank
    from stages
    inner join evidence_rows
        on stages.execution_id = evidence_rows.execution_id
    inner join compared
        on stages.stage = compared.stage
    left join asked
        on
            stages.stage = asked.stage
            and evidence_rows.claim = asked.claim
            and evidence_rows.measure = asked.measure
    left join judged
        on
            stages.subject = judged.side
            and stages.stage = judged.stage
            and evidence_rows.source = judged.source
            and evidence_rows.row_number = judged.row_number
)

select * from described
order by side, stage, source, claim, measure, case_name, occurrence
