-- grain: claim, row_order
-- reads: claim_rows
-- review: what is unmet or missing comes first, then what is nearest to its limit
-- about: the selected subject
with

described as (
    select
        -- identity
        claim_number,
        claim,
        requirement_id,
        source,
        row_number,
        -- what was measured
        measure || if(case_name = '', '', ' · ' || case_name) as measured_what,
        status,
        if(length(value) > 40, left(value, 16) || '…', value) as value,
        margin,
        unit,
        detail
        || if(coalesce(sampling, '') = '', '', ' (sampled: ' || sampling || ')')
            as detail,
        -- what it must be
        case relation
            when 'equal' then '= ' || limit_text
            when 'at_most' then '≤ ' || limit_text
            when 'at_least' then '≥ ' || limit_text
            when 'above' then '> ' || limit_text
            when 'refused' then 'refused: ' || coalesce(expected, '')
            else relation
        end as required,
        -- where it comes from
        stage || coalesce(
            ', ' || state || ' ' || left(finished_at, 10) || ' '
            || substr(finished_at, 12, 8) || ' on ' || host,
            ''
        ) as origin,
        case
            when status in ('unmet', 'invalid') then 1
            when status = 'met' then 3
            else 2
        end as status_order
    from claim_rows
),

numbered as (
    select
        * exclude (status_order),
        row_number() over (
            partition by claim
            order by
                status_order,
                abs(margin) nulls last,
                requirement_id,
                source,
                row_number,
                measured_what
        ) as row_order
    from described
)

select * from numbered
order by claim_number, claim, row_order
