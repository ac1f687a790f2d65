-- grain: preset, is_declared, execution_id, requirement_id, source, row_number
-- reads: raw.contract, raw.contract_presets, raw.contract_cases, judged_executions
-- reads: evidence_rows
-- review: which requirements a row has to keep: those of its case, or else all
with

requirements as (
    select
        *,
        case relation
            when 'identical' then 'comparison'
            when 'different' then 'comparison'
            when 'refused' then 'refusal'
            else 'number'
        end as evidence_kind
    from raw.contract
),

presets as (
    select * from raw.contract_presets
),

executions as (
    select * from judged_executions
),

cases as (
    select * from raw.contract_cases
),

evidence as (
    select * from evidence_rows
),

matched as (
    select
        executions.preset,
        executions.is_declared,
        requirements.requirement_id,
        requirements.relation,
        requirements.unit = evidence.unit as is_same_unit,
        requirements.claim,
        requirements.measure,
        evidence.source,
        evidence.execution_id,
        evidence.row_number,
        evidence.case_name,
        evidence.evidence_kind,
        evidence.value_count,
        evidence.value_real,
        evidence.expected,
        evidence.measured,
        evidence.reason,
        evidence.detail,
        -- exact for integers: they are subtracted as integers
        case
            when
                evidence.value_count is not null
                and requirements.limit_count is not null
                then
                    cast(
                        cast(evidence.value_count as hugeint)
                        - requirements.limit_count as double
                    )
            else
                coalesce(cast(evidence.value_count as double), evidence.value_real)
                - requirements.limit_value
        end as difference
    from requirements
    inner join presets
        on requirements.requirement_id = presets.requirement_id
    inner join executions
        on
            requirements.stage = executions.stage
            and (presets.preset = '' or presets.preset = executions.preset)
            and (requirements.scope = 'any' or executions.is_declared)
    inner join evidence
        on
            executions.execution_id = evidence.execution_id
            and requirements.claim = evidence.claim
            and requirements.measure = evidence.measure
            and requirements.evidence_kind = evidence.evidence_kind
),

own as (
    select distinct
        matched.preset,
        matched.is_declared,
        matched.execution_id,
        matched.requirement_id,
        matched.source,
        matched.row_number,
        true as is_own_case
    from matched
    inner join cases
        on
            matched.requirement_id = cases.requirement_id
            and (
                cases.case_name = ''
                or matched.case_name = cases.case_name
                or starts_with(matched.case_name, cases.case_name || '/')
            )
),

marked as (
    select
        matched.*,
        coalesce(own.is_own_case, false) as is_own_case
    from matched
    left join own
        on
            matched.preset = own.preset
            and matched.is_declared = own.is_declared
            and matched.execution_id = own.execution_id
            and matched.requirement_id = own.requirement_id
            and matched.source = own.source
            and matched.row_number = own.row_number
),

-- a case that nobody lists is nobody's own, so every requirement of its measure holds
assigned as (
    select *
    from marked
    qualify
        is_own_case
        or not bool_or(is_own_case) over (
            partition by
                preset, is_declared, execution_id, claim, measure, source, row_number
        )
)

select * from assigned
order by preset, is_declared, execution_id, requirement_id, source, row_number
