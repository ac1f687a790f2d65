-- grain: preset, is_declared, execution_id, requirement_id, source, row_number
-- reads: matched_rows
-- review: every row that is there, held against its requirement; all should be met
-- kept: all
with

matched as (
    select * from matched_rows
),

completeness as (
    select
        *,
        case
            when evidence_kind = 'number'
                then
                    case
                        when value_count is null and value_real is null then 'missing'
                        when value_count is not null and value_real is not null
                            then 'invalid'
                        when not isfinite(coalesce(value_real, 0)) then 'invalid'
                        when not is_same_unit then 'invalid'
                        else 'present'
                    end
            when coalesce(expected, '') = '' and coalesce(measured, '') = ''
                then 'missing'
            when coalesce(expected, '') = '' then 'invalid'
            when evidence_kind = 'comparison' and coalesce(measured, '') = ''
                then 'invalid'
            else 'present'
        end as presence,
        -- what is no number keeps no relation to anything
        lower(ltrim(expected, '+-')) in ('nan', 'inf', 'infinity')
        or lower(ltrim(measured, '+-')) in ('nan', 'inf', 'infinity') as is_no_number
    from matched
),

held as (
    select
        *,
        case relation
            when 'reported' then true
            when 'equal' then difference = 0
            when 'at_most' then difference <= 0
            when 'at_least' then difference >= 0
            when 'above' then difference > 0
            when 'identical'
                then expected = measured and detail = '' and not is_no_number
            when 'different' then expected <> measured and not is_no_number
            when 'refused' then coalesce(expected = measured, false)
        end as is_met,
        -- how far the value may still go; negative when it went too far
        case relation
            -- from 0, because the negative of 0.0 would read -0.0
            when 'equal' then 0 - abs(difference)
            when 'at_most' then 0 - difference
            when 'at_least' then difference
            when 'above' then difference
        end as margin
    from completeness
),

judged as (
    select
        preset,
        is_declared,
        execution_id,
        requirement_id,
        source,
        row_number,
        case_name,
        case
            when presence <> 'present' then presence
            -- a relation that this view does not know is never met
            when coalesce(is_met, false) then 'met'
            else 'unmet'
        end as status,
        value_count,
        value_real,
        expected,
        measured,
        case when presence = 'present' then margin end as margin,
        reason,
        case
            when evidence_kind = 'number' and presence = 'invalid'
                then 'not one finite value in the unit of the contract; ' || detail
            else detail
        end as detail
    from held
)

select * from judged
order by preset, is_declared, execution_id, requirement_id, source, row_number
